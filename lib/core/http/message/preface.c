// SPDX-License-Identifier: Apache-2.0
/*
 * Recognizes protocols by their first bytes (http/message/preface.h).
 */
#include "http/message/preface.h"

#include <assert.h>

enum mk__preface mk__preface_check(struct mk_str in)
{
    static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    assert(in.len > 0);
    size_t n = in.len < sizeof(preface) - 1 ? in.len : sizeof(preface) - 1;
    if (in.p[0] != preface[0] || memcmp(in.p, preface, n) != 0)
        return MK__PREFACE_NONE;
    return n == sizeof(preface) - 1 ? MK__PREFACE_WHOLE : MK__PREFACE_PARTIAL;
}

bool mk__preface_is_other_protocol(const struct mk_head_parser *p, struct mk_str in)
{
    const char *end = memchr(in.p, '\n', in.len);
    unsigned spaces = 0;
    if (!p->target.len || p->method != MK_METHOD_OTHER || !end)
        return false;
    for (const char *at = in.p; at < end; at++) {
        if (strchr("/:*", *at))
            return false;
        spaces += *at == ' ';
    }
    return spaces == 2;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * What a parsed head means: where the body ends, whether the connection stays, which host is asked for
 * (RFC 9112 sections 3.2, 6, 9; RFC 9110 sections 7.2, 10.1.1). Pure: spans in, facts out.
 */
#ifndef MK_HTTP_MESSAGE_REQUEST_HEAD_H
#define MK_HTTP_MESSAGE_REQUEST_HEAD_H

#include "http/message/parse.h"
#include "http/message/uri.h"

enum mk__body_kind { MK__BODY_NONE, MK__BODY_LENGTH, MK__BODY_CHUNKED };

struct mk__request_head {
    uint8_t body;    /* enum mk__body_kind */
    bool keep_alive; /* as the client wishes */
    bool expects_continue;
    struct mk__span path; /* undecoded; len 0 means "/" */
    struct mk__span query;
    struct mk__span host; /* name without port */
    bool has_query;
    bool asterisk;       /* OPTIONS * */
    uint64_t body_bytes; /* of MK__BODY_LENGTH */
};

/* 0, or the negative status: -400, -417, -501. After -400 and -501 the connection cannot be used further. */
int mk__request_head_read(const struct mk__parse *p, const struct mk__field *fields, const char *base,
                          struct mk__request_head *ret_head);

static inline struct mk_str mk__span_str(const char *base, struct mk__span span)
{
    return mk_str(base + span.at, span.len);
}

#endif

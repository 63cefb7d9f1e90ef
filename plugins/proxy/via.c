// SPDX-License-Identifier: Apache-2.0
/*
 * Via of requests (via.h).
 */
#include "via.h"

enum { HOPS_MAX = 10 };

/* An element is a protocol, a name and perhaps a comment. */
bool via_is_loop(struct mk_str via)
{
    struct mk_str element;
    unsigned n = 0;
    while (mk_str_next(&via, &element)) {
        mk_str_next_word(&element);
        n += mk_str_ieq(mk_str_next_word(&element), MK_STR("monkey"));
    }
    return n >= HOPS_MAX;
}

void via_write(struct mk_buf *out, struct mk_request *req)
{
    static const struct mk_str versions[] = {MK_STR("1.0 monkey"), MK_STR("1.1 monkey"), MK_STR("2.0 monkey")};
    unsigned version = mk_request_major(req) > 1 ? 2 : mk_request_minor(req) > 0;
    struct mk_str former = mk_request_header_by_name(req, MK_STR("Via"));
    mk_buf_adds(out, MK_STR("Via: "));
    mk_buf_adds(out, former);
    mk_buf_adds(out, former.len ? MK_STR(", ") : MK_STR(""));
    mk_buf_adds(out, versions[version]);
    mk_buf_adds(out, MK_STR("\r\n"));
}

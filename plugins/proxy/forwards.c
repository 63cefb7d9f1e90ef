// SPDX-License-Identifier: Apache-2.0
/*
 * The header Max-Forwards (forwards.h).
 */
#include "forwards.h"

#include <monkey/base/buf.h>

#include <inttypes.h>

static bool is_counted(const struct mk_request *req)
{
    return mk_request_method(req) == MK_OPTIONS || mk_request_method(req) == MK_TRACE;
}

bool forwards_end_here(struct mk_request *req)
{
    struct mk_str value = is_counted(req) ? mk_request_header_by_name(req, MK_STR("Max-Forwards")) : MK_STR_NONE;
    uint64_t left = 1;
    if (value.p && !mk_str_u64(value, UINT64_MAX, &left)) {
        mk_response_error(req, 400);
        return true;
    }
    if (left == 0)
        mk_response_method_not_allowed(req, MK_STR("GET, HEAD, POST, PUT, DELETE, OPTIONS, PATCH"));
    return left == 0;
}

void forwards_write(struct mk_buf *out, struct mk_request *req, struct mk_str value)
{
    uint64_t left;
    if (is_counted(req) && mk_str_u64(value, UINT64_MAX, &left) && left)
        mk_buf_addf(out, "Max-Forwards: %" PRIu64 "\r\n", left - 1);
    else
        mk_buf_addf(out, "Max-Forwards: %.*s\r\n", MK_STR_ARG(value));
}

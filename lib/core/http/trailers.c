// SPDX-License-Identifier: Apache-2.0
/*
 * The length of a request's body and its trailers, for a handler that passes both on.
 */
#include "http/request_extra.h"

#include <errno.h>

int mk_request_keep_trailers(struct mk_request *req)
{
    bool has_ended = req->head.body == MK__BODY_CHUNKED && req->body_state == MK__BODY_STATE_DONE;
    struct mk__extra *extra = mk__extra_get(req);
    if (!extra)
        return -ENOMEM;
    if (extra->keeps_trailers)
        return 0;
    if (req->trailers_dropped || has_ended)
        return -EALREADY;
    extra->keeps_trailers = true;
    /* a line without a blank after its colon is longer here */
    mk_buf_init(&extra->trailers, MK_REQUEST_TRAILER_BYTES_MAX + MK_REQUEST_TRAILERS_MAX);
    req->chunked.trailers = &extra->trailers;
    return 0;
}

static void add_line(struct mk_buf *to, struct mk_str name, struct mk_str value)
{
    mk_buf_adds(to, name);
    mk_buf_adds(to, MK_STR(": "));
    mk_buf_adds(to, value);
    mk_buf_adds(to, MK_STR("\r\n"));
}

void mk__trailers_add(struct mk_request *req, struct mk_str name, struct mk_str value)
{
    struct mk__extra *extra = req->extra;
    req->trailers_dropped |= !extra || !extra->keeps_trailers;
    if (req->trailers_dropped || req->body_state >= MK__BODY_STATE_DISCARDING ||
        !mk__response_is_valid_field(name, value))
        return;
    bool is_too_long = extra->trailers.len + name.len + value.len + 4 > MK_REQUEST_TRAILER_BYTES_MAX ||
                       extra->n_trailers++ == MK_REQUEST_TRAILERS_MAX;
    if (!is_too_long)
        add_line(&extra->trailers, name, value);
    if (is_too_long || extra->trailers.err)
        mk__request_reject_body(req, is_too_long ? 413 : 503);
}

bool mk_request_trailer_at(const struct mk_request *req, unsigned n, struct mk_str *ret_name, struct mk_str *ret_value)
{
    struct mk_str lines = MK_STR("");
    if (req->extra && req->body_state == MK__BODY_STATE_DONE)
        lines = mk_buf_str(&req->extra->trailers);
    while (mk_chunked_next_trailer(&lines, ret_name, ret_value))
        if (!mk_response_header_reserved(*ret_name) && n-- == 0)
            return true;
    return false;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * The responses of answer.h.
 */
#include "answer.h"

#include <monkey/json.h>

static int add_headers(struct mk_request *req)
{
    int err = mk_response_header_ref(req, MK_STR("Content-Type"), MK_STR("application/json"));
    if (err == 0)
        err = mk_response_header_ref(req, MK_STR("Cache-Control"), MK_STR("no-store"));
    return err == 0 ? mk_response_header_ref(req, MK_STR("X-Content-Type-Options"), MK_STR("nosniff")) : err;
}

void answer_json(struct mk_request *req, int status, const struct mk_buf *document)
{
    int err = document->err ? document->err : add_headers(req);
    if (err == 0 && status == 503)
        err = mk_response_header_ref(req, MK_STR("Retry-After"), MK_STR("1"));
    if (err == 0)
        err = mk_response_set_status(req, status);
    if (err == 0)
        err = mk_response_write(req, mk_buf_str(document));
    if (err < 0)
        mk_response_error(req, 503);
    else
        mk_response_end(req);
}

void answer_error(struct mk_request *req, int status, const char *sentence)
{
    MK_BUF_ON_STACK(document, 512);
    mk_json_open(&document, NULL, '{');
    mk_json_cstr(&document, "error", sentence);
    mk_json_close_line(&document);
    answer_json(req, status, &document);
}

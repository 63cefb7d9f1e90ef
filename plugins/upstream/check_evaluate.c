// SPDX-License-Identifier: Apache-2.0
#include "check_conf.h"

#include <monkey/base/dial.h>

enum { REASON_PATH_MAX = 200 };

static bool has_text(struct mk_str body, struct mk_str text)
{
    return !text.len || (body.len && memmem(body.p, body.len, text.p, text.len));
}

enum check_result check_evaluate(const struct check_conf *conf, const struct mk_http_response *response,
                                 struct mk_buf *reason)
{
    if (response->err < 0)
        mk_buf_addf(reason, "%s", response->error);
    if (response->err < 0)
        return mk_dial_error_is_own(response->err) ? CHECK_NOT_MADE : CHECK_FAILED;
    if (!check_conf_asks(conf))
        return CHECK_PASSED;
    bool has_status = mk_status_set_has(&conf->statuses, response->status);
    if (has_status && has_text(response->body, conf->text))
        return CHECK_PASSED;
    struct mk_str path = conf->what.path;
    path.len = path.len < REASON_PATH_MAX ? path.len : REASON_PATH_MAX;
    mk_buf_addf(reason, "%.*s %.*s: ", MK_STR_ARG(conf->method), MK_STR_ARG(path));
    if (has_status)
        mk_buf_addf(reason, "the text was not found");
    else
        mk_buf_addf(reason, "%u", response->status);
    return CHECK_FAILED;
}

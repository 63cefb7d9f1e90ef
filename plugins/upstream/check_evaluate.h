// SPDX-License-Identifier: Apache-2.0
/*
 * What a response to a check says of its server. Pure.
 */
#ifndef UPSTREAM_CHECK_EVALUATE_H
#define UPSTREAM_CHECK_EVALUATE_H

#include "check_conf.h"

#include <monkey/http_client.h>

/* What a response, or its lack, says. */
enum check_result {
    CHECK_PASSED,
    CHECK_FAILED,
    CHECK_NOT_MADE, /* this process lacks resources: nothing is known of the server */
};

/* Appends the reason why a check has failed, or was not made. */
enum check_result check_evaluate(const struct check_conf *conf, const struct mk_http_response *response,
                                 struct mk_buf *reason);

#endif

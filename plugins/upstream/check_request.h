// SPDX-License-Identifier: Apache-2.0
/*
 * The request of a check, as it is sent. Pure.
 */
#ifndef UPSTREAM_CHECK_REQUEST_H
#define UPSTREAM_CHECK_REQUEST_H

#include "check_conf.h"

/* Appends the request of a check of CHECK_HTTP or CHECK_FASTCGI. Errors stay in the buffer. */
void check_request_write(const struct check_conf *conf, struct mk_str host, struct mk_buf *out);

#endif

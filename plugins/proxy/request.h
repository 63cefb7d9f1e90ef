// SPDX-License-Identifier: Apache-2.0
/*
 * Writes the head of a request to a backend, anew with the proxy's own framing (RFC 9110 section 7.6).
 */
#ifndef PROXY_REQUEST_H
#define PROXY_REQUEST_H

#include "conf.h"
#include "upgrade.h"

/*
 * Writes the head. Returns 0, -EINVAL (the client's Connection names a header that it may not, or a value of RequestSet
 * has control bytes of the client: 400), -ENOMEM or -ENOBUFS (it does not fit: 431).
 */
int request_write_head(struct mk_buf *out, struct mk_request *req, const struct proxy_conf *conf,
                       const struct upgrade *upgrade, const struct mk_gateway_body *body);

#endif

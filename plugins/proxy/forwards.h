// SPDX-License-Identifier: Apache-2.0
/*
 * Max-Forwards: how many proxies may pass a TRACE or OPTIONS on (RFC 9110 section 7.6.2).
 */
#ifndef PROXY_FORWARDS_H
#define PROXY_FORWARDS_H

#include <monkey/request.h>

/*
 * Responds to a TRACE or OPTIONS that may not be passed on any more: to OPTIONS with 204, to TRACE with 405, and with
 * 400 if the number is none. Returns false if the request is to be passed on.
 */
bool forwards_end_here(struct mk_request *req);
/* Writes the header: for TRACE and OPTIONS with one less, for other methods with the client's value. */
void forwards_write(struct mk_buf *out, struct mk_request *req, struct mk_str value);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * The header Via of requests (RFC 9110 section 7.6.3): which servers a request has passed, and whether it comes back.
 */
#ifndef PROXY_VIA_H
#define PROXY_VIA_H

#include <monkey/buf.h>
#include <monkey/request.h>

/* Tells whether a request has passed so many servers of our name that it will not leave them. Pure. */
bool via_is_loop(struct mk_str via);
/* Writes the header: what the client has sent, and this server. */
void via_write(struct mk_buf *out, struct mk_request *req);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * The responses of the plugin: the server's or the host's pages, with the headers that belong to the status.
 */
#ifndef AUTH_RESPOND_H
#define AUTH_RESPOND_H

#include <monkey/request.h>

/* 401 (RFC 9110 section 15.5.2) with WWW-Authenticate, which is valid until the exchange ends. */
void respond_challenge(struct mk_request *req, struct mk_str challenge);
/* 429 or 503 with Retry-After. */
void respond_later(struct mk_request *req, int status, uint32_t wait_ms);

#endif

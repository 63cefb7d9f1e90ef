// SPDX-License-Identifier: Apache-2.0
/*
 * One request that is passed to a backend, and its response.
 */
#ifndef PROXY_EXCHANGE_H
#define PROXY_EXCHANGE_H

#include "backend.h"

/* Passes the request on. It responds in any case, now or later. */
void exchange_begin(struct mk_request *req, const struct route *route, struct thread *t);

#endif

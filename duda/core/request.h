// SPDX-License-Identifier: Apache-2.0
/*
 * A request of a service, from the call of its handler until the exchange ends.
 */
#ifndef DUDA_CORE_REQUEST_H
#define DUDA_CORE_REQUEST_H

#include "service.h"

struct dispatch;

struct duda_request {
    struct mk_request *req;
    struct service_worker *worker;
    struct mk_list node; /* in worker->requests */
    duda_request_fn done;
    struct gc_item *gc;        /* gc.h */
    struct dispatch *dispatch; /* its route and what was read of it (dispatch.h) */
    struct mk_str body;        /* the whole body, for handlers that do not read it in pieces; valid as the request */
};

/*
 * Makes the request of an exchange; it ends with the exchange. Returns NULL without memory.
 */
struct duda_request *request_new(struct mk_request *req, struct service_worker *worker);

/* Sets the whole body, before the handler is called. */
static inline void request_set_body(struct duda_request *dr, struct mk_str body)
{
    dr->body = body;
}

/* Calls a function of the service. */
void request_call(struct duda_request *dr, duda_request_fn fn);

#endif

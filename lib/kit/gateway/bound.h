// SPDX-License-Identifier: Apache-2.0
/*
 * Connections to backends that belong to one connection of a client: NTLM, and often Negotiate, log a connection in,
 * not a request. They serve no other client, and end with the client's connection. In the thread of the loop.
 */
#ifndef MK_GATEWAY_BOUND_H
#define MK_GATEWAY_BOUND_H

#include "backend.h"

#include <monkey/request.h>

/* Those of a connection of a client. */
struct mk__gw_bound {
    struct mk_list conns;
    unsigned n;
};

/* Lends the connection of the request's client to a backend; NULL: there is none. */
struct mk__gw_backend_conn *mk__gw_bound_take(struct mk_request *req, struct mk__gw_backend *b);
/*
 * Ends the loan of a connection that is the client's now: keeps it for this client, or closes it. It is closed for
 * clients of a trusted proxy, whose connections carry requests of several clients.
 */
void mk__gw_bound_keep(struct mk_request *req, struct mk__gw_backend_conn *c);

#endif

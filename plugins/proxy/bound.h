// SPDX-License-Identifier: Apache-2.0
/*
 * Connections to backends that belong to one connection of a client: NTLM, and often Negotiate, log a connection in,
 * not a request. They serve no other client, and end with the client's connection. In the thread of the loop.
 */
#ifndef PROXY_BOUND_H
#define PROXY_BOUND_H

#include "backend.h"

#include <monkey/request.h>

/* Those of a connection of a client. */
struct bound {
    struct mk_list conns;
    unsigned n;
};

/* Tells whether credentials, or one of the challenges in a WWW-Authenticate, log a connection in. Pure. */
bool bound_is_scheme(struct mk_str value);

/* Lends the connection of the request's client to a backend; NULL: there is none. */
struct backend_conn *bound_take(struct mk_request *req, struct backend *b);
/*
 * Ends the loan of a connection that is the client's now: keeps it for this client, or closes it. It is closed for
 * clients of a trusted proxy, whose connections carry requests of several clients.
 */
void bound_keep(struct mk_request *req, struct backend_conn *c);

#endif

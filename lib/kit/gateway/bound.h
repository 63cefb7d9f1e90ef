// SPDX-License-Identifier: Apache-2.0
/*
 * Connections to backends that belong to one connection of a client: those with a preamble, and those with a login,
 * since NTLM, and often Negotiate, log a connection in, not a request. They serve no other client, and end with the
 * client's connection. Those without a login are kept as all others are, by KeepAlive and KeepAliveTimeout; one with
 * a login as long as both sides want. In the thread of the loop.
 */
#ifndef MK_GATEWAY_BOUND_H
#define MK_GATEWAY_BOUND_H

#include "backend.h"

#include <monkey/request.h>

/* Those of a connection of a client. */
struct mk__gw_bound {
    struct mk_list conns;
    unsigned n;
    struct mk_loop *loop;
    struct mk_timer timer; /* for those without a login */
};

/*
 * Lends the connection of the request's client to a backend, if it has a login or was kept less than `age_ms` ago;
 * NULL: there is none.
 */
struct mk__gw_backend_conn *mk__gw_bound_take(struct mk_request *req, struct mk__gw_backend *b, uint64_t age_ms);
/*
 * Returns the server of the route's group on whose connection the client has a login, which another server does not
 * know; NULL: there is none. It may be gone: only to be compared.
 */
const struct mk_upstream_server *mk__gw_bound_find_login(struct mk_request *req, const struct mk__gw_thread *t,
                                                         const struct mk_gateway_route *route);
/*
 * Ends the loan of a connection that is the client's now: keeps it for this client, or closes it. It is closed for
 * clients of a trusted proxy, whose connections carry requests of several clients.
 */
void mk__gw_bound_keep(struct mk_request *req, struct mk__gw_backend_conn *c);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * The tunnel of an exchange that a handler has taken over (<monkey/tunnel.h>). Lives in the arena of the exchange.
 */
#ifndef MK_HTTP_TUNNEL_H
#define MK_HTTP_TUNNEL_H

#include <monkey/tunnel.h>

struct mk__tunnel {
    mk_tunnel_fn ready;
    void *ctx;
    bool shutdown_notified; /* ready() was called for the shutdown */
};

/*
 * Calls ready() with what is possible: `events` (MK_TUNNEL_READ, MK_TUNNEL_WRITE) and, once, MK_TUNNEL_DRAINING. Not
 * after the handler has ended the tunnel.
 */
void mk__tunnel_call_ready(struct mk_request *req, unsigned events);

#endif

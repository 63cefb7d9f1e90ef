// SPDX-License-Identifier: Apache-2.0
/*
 * Passes bytes between a client and a backend in both directions, after an upgrade.
 *
 *     each direction:  OPEN ─► ENDED (its source has ended, what waits is passed on) ─► SHUT (so is the end)
 *
 * The tunnel ends when both directions are shut, or with the first error of a side. In a direction at most one piece
 * waits in memory, while the receiver does not take it; the sender is not read meanwhile.
 */
#ifndef MK_GATEWAY_TUNNEL_H
#define MK_GATEWAY_TUNNEL_H

#include "backend.h"

#include <monkey/tunnel.h>

enum { MK__GW_TUNNEL_PIECE_BYTES = 16384 };

struct mk__gw_tunnel_direction {
    char *piece; /* NULL: none waits */
    uint32_t size, at;
    bool has_ended, is_shut;
    bool is_refused; /* the receiver has failed */
};

/* In the arena of the request, as long as that. */
struct mk__gw_tunnel {
    struct mk_request *req;
    struct mk__gw_backend *backend;   /* held */
    struct mk__gw_backend_conn *conn; /* NULL: there is no tunnel, or it has ended */
    struct mk__gw_tunnel_direction up, down;
    bool is_open; /* the head of the response was sent */
};

/*
 * Takes the exchange over, and the connection with the hold of its backend. `rest` are bytes of it that were read
 * already; it copies them. Returns 0, or -errno, and the connection stays the caller's.
 */
int mk__gw_tunnel_open(struct mk__gw_tunnel *t, struct mk_request *req, struct mk__gw_backend_conn *conn,
                       struct mk_str rest);
/* Ends with the exchange. Does nothing for a struct of zeros. */
void mk__gw_tunnel_release(struct mk__gw_tunnel *t);

#endif

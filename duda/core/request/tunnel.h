// SPDX-License-Identifier: Apache-2.0
/*
 * Tunnels of services (<duda/tunnel.h>):
 *
 *     tunnel->open() ─► head is sent ─► ready() ... ─► tunnel->end(), the client, a timeout, a new service ─► on_end()
 */
#ifndef DUDA_CORE_REQUEST_TUNNEL_H
#define DUDA_CORE_REQUEST_TUNNEL_H

#include <duda/tunnel.h>

extern const struct duda_api_tunnel object_tunnel;

/*
 * Notifies a tunnel that its service was replaced, and ends it. Returns false if `dr` is no tunnel, was notified
 * before, or has not begun: the caller aborts it.
 */
bool tunnel_retire(struct duda_request *dr);

/* The exchange of a tunnel has ended: calls its function for that. */
void tunnel_finish(struct duda_request *dr);

#endif

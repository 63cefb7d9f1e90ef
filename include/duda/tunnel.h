// SPDX-License-Identifier: Apache-2.0
/*
 * The object `tunnel`: takes an exchange over, for WebSocket and other protocols that begin with an upgrade
 * (docs/reference/duda/tunnel.md). Its connection (HTTP/1.1) or stream (HTTP/2) then carries bytes both ways.
 *
 *     GET with Upgrade ─► tunnel->open() ─► 101 is sent ─► ready() ... ready() ─► tunnel->end() ─► on_end()
 *
 * An extended CONNECT of HTTP/2 (RFC 8441) comes as a GET with Upgrade, too, and gets 200 instead of 101.
 *
 * A tunnel is a request: request->..., response->ticket(), response->on_done() and response->abort() work until it
 * ends; other functions of `response` fail. Nothing is buffered for the service: it keeps what cannot be written yet,
 * and a service that does not read holds the client back. If no byte passes for TunnelTimeout, the tunnel is cut.
 *
 * Results: -EINVAL (an argument, or a request that is no tunnel); -ESTALE (the request has ended); -EPERM (not in a
 * callback of the request's worker). These are mistakes, which are logged. All functions are for that worker.
 */
#ifndef DUDA_TUNNEL_H
#define DUDA_TUNNEL_H

#include "types.h"

enum {
    DUDA_TUNNEL_READ = 1,     /* bytes, or the end of the client's bytes, can be read */
    DUDA_TUNNEL_WRITE = 2,    /* bytes can be written */
    DUDA_TUNNEL_DRAINING = 4, /* the server shuts down: end the tunnel soon; once for each tunnel */
    DUDA_TUNNEL_RETIRED =
        8, /* the service was replaced or removed, and ShutdownTimeout is over: write the last bytes */
};

/*
 * Is called with what is possible now, and again when more becomes possible. It is edge-triggered: read until -EAGAIN,
 * or call tunnel->wake() to be called once more. It may end the tunnel. After a call with DUDA_TUNNEL_RETIRED the
 * framework ends it; what was written in the call is sent.
 */
typedef void (*duda_tunnel_fn)(duda_request_t *dr, unsigned events, void *data);

struct duda_api_tunnel {
    /*
     * Takes the exchange over, once its handler has decided to. `protocol` is the value of Upgrade in the response;
     * other headers are those that were added before. Returns 0; -EALREADY (it is a tunnel already, or the response has
     * begun); -EINVAL, too, for a request without Upgrade, with a body, or of HTTP/1.0; or -ENOMEM. After an error the
     * handler responds.
     */
    int (*open)(duda_request_t *dr, const char *protocol, duda_tunnel_fn ready, void *data);
    /*
     * Calls `fn` exactly once when the exchange ends, for whatever reason: end(), the client, a timeout, a reload. In
     * it, `dr` is still valid, but read() and write() return -EPIPE. One function for each tunnel; NULL removes it.
     * Returns 0.
     */
    int (*on_end)(duda_request_t *dr, duda_event_fn fn, void *data);
    /*
     * Reads bytes of the client. Returns their count, 0 (the client has ended its side), -EAGAIN (ready() is called
     * when there are more), -EPIPE (after end()) or another -errno (the connection has failed: call end()).
     */
    ssize_t (*read)(duda_request_t *dr, void *to, size_t size);
    /*
     * Writes bytes to the client. Returns their count, which may be less than `size`, -EAGAIN (ready() is called when
     * there is room; also before the head is sent), -EPIPE (after end() or shutdown(), or the client has left) or
     * another -errno (the connection has failed, or there is no memory: call end()).
     */
    ssize_t (*write)(duda_request_t *dr, const void *from, size_t size);
    /*
     * Ends the service's side: the client reads the end after what was written. Reading continues. Returns 0, -EPIPE
     * (after end()) or another -errno (the connection has failed).
     */
    int (*shutdown)(duda_request_t *dr);
    /* Has ready() called once more in a later turn of the loop, after other connections. */
    void (*wake)(duda_request_t *dr);
    /*
     * Ends the tunnel after what was written, and the connection or stream. The request ends when the callback that
     * has called it returns, or soon after; a second call does nothing. response->abort() drops what was written.
     */
    void (*end)(duda_request_t *dr);
};

DUDA_OBJECT(struct duda_api_tunnel, tunnel)

#endif

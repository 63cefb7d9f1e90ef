// SPDX-License-Identifier: Apache-2.0
/*
 * Takes an exchange over as a tunnel, for WebSocket and proxies: after 101 (Upgrade) or the 200 of a CONNECT, its
 * connection (HTTP/1) or stream (HTTP/2) carries bytes in both directions. RFC 9110 sections 7.8 and 9.3.6.
 *
 *     handler: mk_request_take_over() ─► head is sent ─► ready() ... ready() ─► mk_tunnel_end()
 *
 * The exchange lasts until the tunnel ends: its arena stays, and on_done follows. Once the head was sent, the fields
 * Connection, Upgrade and Sec-WebSocket-* of the request may be gone; the others stay. All functions are called in the
 * worker's thread and do not block. The server does not buffer for the handler: the handler keeps bytes that cannot be
 * written yet, and flow control stops the client while the handler does not read.
 */
#ifndef MONKEY_TUNNEL_H
#define MONKEY_TUNNEL_H

#include "request.h"

MK_C_BEGIN

enum mk_tunnel_events {
    MK_TUNNEL_READ = 1,     /* bytes, or the end of the client's bytes, can be read */
    MK_TUNNEL_WRITE = 2,    /* bytes can be written */
    MK_TUNNEL_DRAINING = 4, /* the server shuts down: end the tunnel soon; once for each tunnel */
};

/*
 * Is called with what is possible now, and again when more becomes possible. It is edge-triggered: read until -EAGAIN,
 * or call mk_tunnel_wake() to be called once more. May end the tunnel.
 */
typedef void (*mk_tunnel_fn)(struct mk_request *req, unsigned events, void *ctx);

/*
 * Responds with 101 and `Connection: Upgrade` (the handler adds Upgrade and other headers before), or with 200 to a
 * CONNECT, and begins the tunnel. If no byte passes for TunnelTimeout, the tunnel is cut.
 * Returns 0, -EINVAL (HTTP/1.0, a request without Upgrade, one whose body was not read to its end, or a response that
 * has begun) or -ENOMEM.
 */
MK_API int mk_request_take_over(struct mk_request *req, mk_tunnel_fn ready, void *ctx);

/*
 * Reads bytes of the client.
 * Returns their count, 0 (the client has ended its side), -EAGAIN (ready() is called when there are more) or another
 * -errno (the connection has failed: call mk_tunnel_end()).
 */
MK_API ssize_t mk_tunnel_read(struct mk_request *req, void *to, size_t size);
/*
 * Writes bytes to the client.
 * Returns their count, which may be less than `size`, -EAGAIN (ready() is called when there is room; also before the
 * head is sent), -EPIPE (the client has gone, or mk_tunnel_shutdown() was called) or another -errno (the connection has
 * failed, or there is no memory: call mk_tunnel_end()).
 */
MK_API ssize_t mk_tunnel_write(struct mk_request *req, const void *from, size_t size);
/*
 * Ends the server's side: the client reads the end after what was written, and nothing more can be written. Reading
 * continues.
 * Returns 0, or -errno (the connection has failed, for example -ENOTCONN); always 0 on HTTP/2.
 */
MK_API int mk_tunnel_shutdown(struct mk_request *req);
/* Has ready() called once more in a later turn of the loop, after other connections. */
MK_API void mk_tunnel_wake(struct mk_request *req);
/* Ends the tunnel, and the connection or stream. `req` may be gone when the callback that called this returns. */
MK_API void mk_tunnel_end(struct mk_request *req);

MK_C_END

#endif

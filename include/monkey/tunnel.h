// SPDX-License-Identifier: Apache-2.0
/*
 * Taking an exchange over: after a 101 (Upgrade) or the 200 of a CONNECT its connection is a stream of bytes both
 * ways, for WebSocket and tunnels. RFC 9110 sections 7.8 and 9.3.6.
 *
 *     handler: mk_request_take_over() ─► head leaves ─► ready() ... ready() ─► mk_tunnel_end()
 *
 * The exchange goes on all that time: its memory stays, on_done comes at its end. Everything is called in the
 * worker's thread and never blocks. Nothing is buffered here: what cannot be written now is the handler's to keep,
 * and what is not read makes the client wait.
 */
#ifndef MONKEY_TUNNEL_H
#define MONKEY_TUNNEL_H

#include "request.h"

enum mk_tunnel_events {
    MK_TUNNEL_READ = 1,     /* bytes, or the end of the client's bytes, may be read */
    MK_TUNNEL_WRITE = 2,    /* bytes may be written */
    MK_TUNNEL_DRAINING = 4, /* the server is going: come to an end */
};

/*
 * What is possible now. Called again when more becomes possible, as with edges: read until -EAGAIN, or call
 * mk_tunnel_wake() to be called once more. It may end the tunnel.
 */
typedef void (*mk_tunnel_fn)(struct mk_request *req, unsigned events, void *ctx);

/*
 * Answers with 101 and `Connection: Upgrade` (the handler has added Upgrade and what else belongs there), or with
 * 200 to a CONNECT, and hands the connection over. -EINVAL when that cannot be: HTTP/1.0, a request that asks for no
 * Upgrade, one with a body, a response that has begun. The wait for bytes is limited by TunnelTimeout.
 */
MK_API int mk_request_take_over(struct mk_request *req, mk_tunnel_fn ready, void *ctx);

/* Bytes read; 0: the client has ended its side; -EAGAIN; another -errno: the connection is of no use any more. */
MK_API ssize_t mk_tunnel_read(struct mk_request *req, void *to, size_t size);
/* Bytes written, perhaps fewer than given; -EAGAIN; another -errno. */
MK_API ssize_t mk_tunnel_write(struct mk_request *req, const void *from, size_t size);
/* Ends our side; reading goes on. */
MK_API int mk_tunnel_shutdown(struct mk_request *req);
/* Calls ready() once more, after others had their turn. */
MK_API void mk_tunnel_wake(struct mk_request *req);
/* Ends the exchange and the connection. `req` may be gone when the calling callback returns. */
MK_API void mk_tunnel_end(struct mk_request *req);

#endif

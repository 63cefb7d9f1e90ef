// SPDX-License-Identifier: Apache-2.0
/*
 * WebSockets on the exchanges of a plugin: the handshake in a request, and the tunnel (<monkey/tunnel.h>) as the
 * stream.
 */
#include "ws.h"

#include <errno.h>

/* In the arena of the exchange. */
struct exchange {
    struct mk_request *req;
    struct mk_ws *ws; /* NULL: it has ended */
};

/* ── the stream ── */

static ssize_t read_tunnel(void *stream, void *to, size_t size)
{
    struct exchange *x = stream;
    return mk_tunnel_read(x->req, to, size);
}

static ssize_t write_tunnel(void *stream, const void *from, size_t size)
{
    struct exchange *x = stream;
    return mk_tunnel_write(x->req, from, size);
}

static void wake_tunnel(void *stream)
{
    struct exchange *x = stream;
    mk_tunnel_wake(x->req);
}

static void end_tunnel(void *stream)
{
    struct exchange *x = stream;
    x->ws = NULL;
    mk_tunnel_end(x->req);
}

static const struct mk_ws_stream_ops tunnel_ops = {
    .read = read_tunnel,
    .write = write_tunnel,
    .wake = wake_tunnel,
    .end = end_tunnel,
};

static void run_tunnel(struct mk_request *req, unsigned events, void *ctx)
{
    struct exchange *x = ctx;
    (void)req;
    if (x->ws)
        mk_ws_run(x->ws, events);
}

/* The exchange ends, whatever the reason. */
static void end_exchange(void *ctx)
{
    struct exchange *x = ctx;
    struct mk_ws *ws = x->ws;
    x->ws = NULL;
    if (ws)
        mk_ws_lost(ws);
}

/* ── the handshake ── */

static struct mk_str find_header(struct mk_request *req, const char *name)
{
    return mk_request_header_by_name(req, mk_str_c(name));
}

static struct mk_ws_request read_handshake(struct mk_request *req)
{
    return (struct mk_ws_request){
        .upgrade = mk_request_header(req, MK_HEADER_UPGRADE),
        .key = find_header(req, "Sec-WebSocket-Key"),
        .version = find_header(req, "Sec-WebSocket-Version"),
        .protocols = find_header(req, "Sec-WebSocket-Protocol"),
        .extensions = find_header(req, "Sec-WebSocket-Extensions"),
        .origin = mk_request_header(req, MK_HEADER_ORIGIN),
        .host = mk_request_header(req, MK_HEADER_HOST),
        .is_get = mk_request_method(req) == MK_GET,
        .is_tls = mk_str_eq(mk_request_scheme(req), MK_STR("https")),
        .is_http1 = mk_request_major(req) == 1,
    };
}

static int add_header(struct mk_request *req, const char *name, struct mk_str value)
{
    return value.len ? mk_response_header(req, mk_str_c(name), value) : 0;
}

/* The protocol stays where it is, in the settings; the other values are copied. */
static int add_headers(struct mk_request *req, const struct mk_ws_negotiated *a)
{
    if (mk_response_header_ref(req, MK_STR("Upgrade"), MK_STR("websocket")) < 0 ||
        add_header(req, "Sec-WebSocket-Accept", mk_str_c(a->accept)) < 0 ||
        (a->protocol.len && mk_response_header_ref(req, MK_STR("Sec-WebSocket-Protocol"), a->protocol) < 0) ||
        add_header(req, "Sec-WebSocket-Extensions", mk_str_c(a->extensions)) < 0)
        return -ENOMEM;
    return 0;
}

/* A page of mk_response_error() has no headers of ours, which 426 must have (RFC 6455 section 4.2.2). */
static void refuse_version(struct mk_request *req)
{
    static const char text[] = "This server speaks version 13 of the WebSocket protocol.\n";
    mk_response_set_status(req, 426);
    mk_response_header_ref(req, MK_STR("Sec-WebSocket-Version"), MK_STR("13"));
    if (mk_request_major(req) == 1)
        mk_response_header_ref(req, MK_STR("Upgrade"), MK_STR("websocket"));
    mk_response_header_ref(req, MK_STR("Content-Type"), MK_STR("text/plain; charset=utf-8"));
    mk_response_write_ref(req, mk_str_c(text));
    mk_response_end(req);
}

static void refuse_upgrade(struct mk_request *req, int status)
{
    if (status == 426)
        refuse_version(req);
    else
        mk_response_error(req, status);
}

/* Returns 101, 400 (HTTP/1.0, a body, or no "Connection: upgrade") or 503 (no memory). */
static int open_exchange(struct exchange *x, struct mk_ws_worker *worker, const struct mk_ws_settings *settings,
                         const struct mk_ws_negotiated *negotiated, int channel, void *ctx)
{
    struct mk_ws *ws = mk_ws_open(worker, settings, negotiated, channel, ctx, &tunnel_ops, x);
    if (!ws)
        return 503;
    int err = mk_request_take_over(x->req, run_tunnel, x);
    if (err == 0) {
        x->ws = ws;
        return 101;
    }
    mk__ws_discard(ws);
    return err == -EINVAL ? 400 : 503;
}

struct mk_ws *mk_ws_accept(struct mk_request *req, struct mk_ws_worker *worker, const struct mk_ws_settings *settings,
                           int channel, void *ctx)
{
    struct mk_ws_request handshake = read_handshake(req);
    struct mk_ws_negotiated negotiated;
    struct exchange *x = mk_arena_alloc(mk_request_arena(req), sizeof(*x));
    const char *reason;
    if (x)
        *x = (struct exchange){.req = req};
    if (!x || mk_arena_defer(mk_request_arena(req), end_exchange, x) < 0) {
        refuse_upgrade(req, 503);
        return NULL;
    }
    int status = mk_ws_negotiate(&handshake, settings, &negotiated, &reason);
    if (status == 101)
        status =
            add_headers(req, &negotiated) == 0 ? open_exchange(x, worker, settings, &negotiated, channel, ctx) : 503;
    if (status != 101) {
        refuse_upgrade(req, status);
        return NULL;
    }
    return x->ws;
}

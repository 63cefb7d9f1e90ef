// SPDX-License-Identifier: Apache-2.0
/*
 * WebSockets of clients: the handshake in a request, and its tunnel (<duda/tunnel.h>) as the stream.
 */
#include "websocket.h"

#include <duda/request.h>
#include <duda/response.h>
#include <duda/tunnel.h>

#include <errno.h>
#include <string.h>

/* ── the stream ── */

static ssize_t read_tunnel(void *stream, void *to, size_t size)
{
    struct ws_conn *conn = stream;
    return tunnel->read(conn->wr.dr, to, size);
}

static ssize_t write_tunnel(void *stream, const void *from, size_t size)
{
    struct ws_conn *conn = stream;
    return tunnel->write(conn->wr.dr, from, size);
}

static void wake_tunnel(void *stream)
{
    struct ws_conn *conn = stream;
    tunnel->wake(conn->wr.dr);
}

static void end_tunnel(void *stream)
{
    struct ws_conn *conn = stream;
    tunnel->end(conn->wr.dr);
}

static const struct mk_ws_stream_ops tunnel_ops = {
    .read = read_tunnel,
    .write = write_tunnel,
    .wake = wake_tunnel,
    .end = end_tunnel,
};

static_assert((int)DUDA_TUNNEL_READ == (int)MK_TUNNEL_READ && (int)DUDA_TUNNEL_WRITE == (int)MK_TUNNEL_WRITE &&
                  (int)DUDA_TUNNEL_DRAINING == (int)MK_TUNNEL_DRAINING,
              "events are passed on as they are");

static void run_tunnel(duda_request_t *dr, unsigned events, void *data)
{
    struct ws_conn *conn = data;
    (void)dr;
    if (!conn->ws)
        return;
    if (events & DUDA_TUNNEL_RETIRED) /* the framework ends the tunnel when this returns */
        mk_ws_close(conn->ws, MK_WS_SERVICE_RESTART, MK_STR_NONE);
    else
        mk_ws_run(conn->ws, events);
}

/* The exchange ends, whatever the reason. */
static void end_exchange(duda_request_t *dr, void *data)
{
    struct ws_conn *conn = data;
    (void)dr;
    if (conn->ws)
        mk_ws_lost(conn->ws);
    ws_conn_put(conn);
}

/* ── the handshake ── */

static struct mk_str find_header(duda_request_t *dr, const char *name)
{
    const char *value = request->header_get(dr, name);
    return value ? mk_str_c(value) : MK_STR_NONE;
}

static struct mk_ws_request read_handshake(duda_request_t *dr)
{
    return (struct mk_ws_request){
        .upgrade = find_header(dr, "Upgrade"),
        .key = find_header(dr, "Sec-WebSocket-Key"),
        .version = find_header(dr, "Sec-WebSocket-Version"),
        .protocols = find_header(dr, "Sec-WebSocket-Protocol"),
        .extensions = find_header(dr, "Sec-WebSocket-Extensions"),
        .origin = find_header(dr, "Origin"),
        .host = find_header(dr, "Host"),
        .is_get = request->is_get(dr) && request->content_length(dr) <= 0,
        .is_tls = strcmp(request->scheme(dr), "https") == 0,
        .is_http1 = request->http_major(dr) == 1,
    };
}

static int add_headers(duda_request_t *dr, const struct mk_ws_negotiated *a)
{
    int err = 0;
    if (*a->accept)
        err = response->header(dr, "Sec-WebSocket-Accept", "%s", a->accept);
    if (err == 0 && a->protocol.len)
        err = response->header(dr, "Sec-WebSocket-Protocol", "%.*s", MK_STR_ARG(a->protocol));
    if (err == 0 && *a->extensions)
        err = response->header(dr, "Sec-WebSocket-Extensions", "%s", a->extensions);
    return err;
}

/* 426 names the version that is spoken (RFC 6455 section 4.2.2). */
static void refuse_version(duda_request_t *dr)
{
    static const char text[] = "This server speaks version 13 of the WebSocket protocol.\n";
    response->http_status(dr, 426);
    response->header(dr, "Sec-WebSocket-Version", "13");
    if (request->http_major(dr) == 1)
        response->header(dr, "Upgrade", "websocket");
    response->http_content_type(dr, "txt");
    response->print(dr, text, sizeof(text) - 1);
    response->end(dr, NULL);
}

/* The page for an error keeps headers of the service, but the handshake is off. */
static void send_status(duda_request_t *dr, int status)
{
    static const char *const ours[] = {"Sec-WebSocket-Accept", "Sec-WebSocket-Protocol", "Sec-WebSocket-Extensions"};
    for (size_t i = 0; i < MK_COUNT_OF(ours); i++)
        response->header_remove(dr, ours[i]);
    if (status == 426)
        refuse_version(dr);
    else
        response->error(dr, status);
}

/* Makes the exchange a tunnel. Returns 0, or the status for the client. */
static int open_tunnel(struct ws_conn *conn)
{
    duda_request_t *dr = conn->wr.dr;
    int err = tunnel->open(dr, "websocket", run_tunnel, conn);
    if (err == 0) {
        tunnel->on_end(dr, end_exchange, conn);
        return 0;
    }
    conn->is_silent = true;
    mk_ws_lost(conn->ws);
    return err == -ENOMEM ? 503 : 400;
}

static int open_conn(struct ws_conn *conn, const struct mk_ws_negotiated *negotiated)
{
    conn->ws =
        mk_ws_open(conn->worker->server, &conn->endpoint->settings, negotiated, conn->channel, conn, &tunnel_ops, conn);
    return conn->ws ? open_tunnel(conn) : 503;
}

/* Returns 0, or the status for the client. */
static int begin_conn(struct ws_conn *conn)
{
    const struct mk_ws_request handshake = read_handshake(conn->wr.dr);
    struct mk_ws_negotiated negotiated;
    const char *reason;
    int status = mk_ws_negotiate(&handshake, &conn->endpoint->settings, &negotiated, &reason);
    if (status != 101)
        return status;
    return add_headers(conn->wr.dr, &negotiated) == 0 ? open_conn(conn, &negotiated) : 503;
}

/* Returns what the worker of a request has; or NULL, which is logged. */
static struct ws_worker *check_request(duda_request_t *dr, const char *name)
{
    struct ws_worker *w = ws_find_worker();
    struct duda_package_worker *base = w && dr ? duda_package_loader->worker_of(&ws_package, dr) : NULL;
    if (base && base == w->base)
        return w;
    ws_refuse(w, name, WS_INVALID,
              !dr     ? "the request is NULL"
              : !w    ? "it works only in callbacks of workers; the call did nothing"
              : !base ? "the request has ended"
                      : "the request is of another worker");
    return NULL;
}

static ws_request_t *accept_request(duda_request_t *dr, const ws_endpoint_t *endpoint, int channel, void *data,
                                    const char *name)
{
    struct ws_worker *w = check_request(dr, name);
    if (!w)
        return NULL;
    struct ws_conn *conn = ws_conn_get(w, endpoint, dr, channel, data);
    int status = conn ? begin_conn(conn) : 503;
    if (status == 0)
        return &conn->wr;
    if (conn)
        ws_conn_put(conn);
    send_status(dr, status);
    return NULL;
}

ws_request_t *ws_accept(duda_request_t *dr, const ws_endpoint_t *endpoint, int channel, void *data)
{
    return accept_request(dr, endpoint, channel, data, "accept");
}

int ws_handshake(duda_request_t *dr, int channel)
{
    return accept_request(dr, NULL, channel, NULL, "handshake") ? 0 : -1;
}

/* ── the handshake of July 2012 ── */

/* Returns the worker's endpoint with these callbacks, which it makes at the first use; NULL without memory. */
static const ws_endpoint_t *find_endpoint(struct ws_worker *w, const struct ws_endpoint *wanted)
{
    struct ws_endpoint *e = w->endpoints;
    while (e && memcmp(e->callbacks, wanted->callbacks, sizeof(e->callbacks)) != 0)
        e = e->next;
    if (e || !(e = mem->alloc(sizeof(*e))))
        return e;
    *e = *wanted;
    e->next = w->endpoints;
    w->endpoints = e;
    return e;
}

int ws_handshake_with(duda_request_t *dr, ws_callback_t on_read, ws_callback_t on_write, ws_callback_t on_error,
                      ws_callback_t on_close, ws_callback_t on_timeout)
{
    const struct ws_endpoint wanted = {
        .settings.handlers = ws_handlers,
        .callbacks = {[WS_ON_MESSAGE] = on_read,
                      [WS_ON_ERROR] = on_error,
                      [WS_ON_CLOSE] = on_close,
                      [WS_ON_TIMEOUT] = on_timeout,
                      [WS_ON_WRITABLE] = on_write},
    };
    struct ws_worker *w = check_request(dr, "handshake");
    const ws_endpoint_t *endpoint = w ? find_endpoint(w, &wanted) : NULL;
    if (w && !endpoint)
        send_status(dr, 503);
    return endpoint && ws_accept(dr, endpoint, WS_CHANNEL_ALL, NULL) ? 0 : -1;
}

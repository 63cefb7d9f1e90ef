// SPDX-License-Identifier: Apache-2.0
/*
 * WebSockets as services see them: their memory, and the callbacks.
 */
#include "websocket.h"

#include <assert.h>
#include <string.h>

enum { SLAB_CONNS = 32, REASON_BYTES = 128 };

struct ws_slab {
    struct ws_slab *next;
    struct ws_conn conns[SLAB_CONNS];
};

/* ── memory ── */

/* Makes unused ones. Returns false without memory. */
static bool add_slab(struct ws_worker *w)
{
    struct ws_slab *slab = mem->alloc_z(sizeof(*slab));
    if (!slab)
        return false;
    slab->next = w->slabs;
    w->slabs = slab;
    for (unsigned i = SLAB_CONNS; i-- > 0;) {
        slab->conns[i].worker = w;
        slab->conns[i].next_unused = w->unused;
        w->unused = &slab->conns[i];
    }
    return true;
}

/* Returns the descriptor, with which a request of levels 0 to 2 begins (<duda/compat/request.h>); else -1. */
static int get_socket(const duda_request_t *dr)
{
    int fd = -1;
    if (dr)
        memcpy(&fd, (const void *)dr, sizeof(fd));
    return fd > 0 ? fd : -1;
}

struct ws_conn *ws_conn_get(struct ws_worker *w, const struct ws_endpoint *endpoint, duda_request_t *dr, int channel,
                            void *data)
{
    if (!w->unused && !add_slab(w))
        return NULL;
    struct ws_conn *conn = w->unused;
    assert(!conn->ws && conn->worker == w);
    channel = channel < 0 ? WS_CHANNEL_ALL : channel;
    if (!channels_join(&w->service->channels, channel))
        return NULL;
    w->unused = conn->next_unused;
    *conn = (struct ws_conn){
        .wr = {.socket = get_socket(dr), .channel = channel, .dr = dr, .data = data},
        .worker = w,
        .endpoint = endpoint ? endpoint : &w->service->endpoint,
        .channel = channel,
    };
    mk_list_init(&conn->node);
    return conn;
}

void ws_conn_leave_channel(struct ws_conn *conn)
{
    struct ws_service *service = conn->worker->service;
    channels_leave(&service->channels, conn->channel);
    ws_names_put(&service->names, conn->name);
    conn->channel = WS_CHANNEL_ALL;
    conn->name = NULL;
}

void ws_conn_put(struct ws_conn *conn)
{
    struct ws_worker *w = conn->worker;
    ws_conn_leave_channel(conn);
    mk_list_del(&conn->node);
    conn->ws = NULL;
    conn->next_unused = w->unused;
    w->unused = conn;
}

void ws_conn_release(struct ws_worker *w)
{
    for (struct ws_slab *slab = w->slabs, *next; slab; slab = next) {
        next = slab->next;
        mem->free(slab);
    }
}

/* ── callbacks ── */

static void call_callback(struct ws_conn *conn, unsigned type)
{
    assert(type < MK_COUNT_OF(conn->endpoint->callbacks));
    ws_callback_t fn = conn->endpoint->callbacks[type];
    if (!fn)
        fn = conn->worker->service->endpoint.callbacks[type];
    if (!fn || conn->is_silent)
        return;
    duda_package_loader->name_callback(conn->worker->base, (void (*)(void))fn);
    fn(conn->wr.dr, &conn->wr);
}

static void set_payload(struct ws_conn *conn, unsigned opcode, char *data, size_t len)
{
    conn->wr.opcode = opcode;
    conn->wr.payload = (unsigned char *)data;
    conn->wr.payload_len = len;
}

static void on_open(struct mk_ws *ws, void *ctx)
{
    struct ws_conn *conn = ctx;
    (void)ws;
    conn->is_opened = true;
    duda_package_loader->count(NULL, conn->worker->service->counters.open, 1);
    call_callback(conn, WS_ON_OPEN);
}

static void on_message(struct mk_ws *ws, enum mk_ws_opcode opcode, char *data, size_t len, void *ctx)
{
    struct ws_conn *conn = ctx;
    (void)ws;
    duda_package_loader->count(conn->worker->base, conn->worker->service->counters.received, 1);
    set_payload(conn, opcode, data, len);
    call_callback(conn, WS_ON_MESSAGE);
    set_payload(conn, 0, NULL, 0);
}

static void on_writable(struct mk_ws *ws, void *ctx)
{
    (void)ws;
    call_callback(ctx, WS_ON_WRITABLE);
}

/* Calls ERROR or TIMEOUT, if that is why it has ended. A client that leaves before OPEN is no error. */
static void call_cause(struct ws_conn *conn)
{
    enum mk_ws_cause cause = mk_ws_get_cause(conn->ws);
    if (!conn->is_opened && conn->wr.dr)
        return;
    if (cause == MK_WS_CAUSE_TIMEOUT)
        call_callback(conn, WS_ON_TIMEOUT);
    else if (cause == MK_WS_CAUSE_LOST || cause == MK_WS_CAUSE_ERROR)
        call_callback(conn, WS_ON_ERROR);
}

static void on_close(struct mk_ws *ws, unsigned code, struct mk_str reason, void *ctx)
{
    struct ws_conn *conn = ctx;
    char text[REASON_BYTES];
    size_t n = reason.len < sizeof(text) ? reason.len : sizeof(text) - 1;
    conn->ws = ws; /* a client's may end before mk_ws_connect() returns */
    conn->is_closed = true;
    if (conn->is_opened)
        duda_package_loader->count(NULL, conn->worker->service->counters.open, -1);
    ws_conn_leave_channel(conn);
    if (n)
        memcpy(text, reason.p, n);
    text[n] = '\0';
    conn->wr.code = code;
    set_payload(conn, WS_OPCODE_CLOSE, text, n);
    call_cause(conn);
    call_callback(conn, WS_ON_CLOSE);
    set_payload(conn, 0, NULL, 0);
    conn->ws = NULL;
    if (!conn->wr.dr)
        ws_conn_put(conn); /* others when the exchange has ended */
}

const struct mk_ws_handlers ws_handlers = {
    .on_open = on_open,
    .on_message = on_message,
    .on_writable = on_writable,
    .on_close = on_close,
};

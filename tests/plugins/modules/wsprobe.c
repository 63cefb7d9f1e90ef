// SPDX-License-Identifier: Apache-2.0
/*
 * wsprobe: WebSockets for the end-to-end tests. What each path does stands in the table `endpoints`.
 */
#include <monkey/kit/websocket.h>
#include <monkey/plugin.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const struct mk_plugin mk_plugin_wsprobe;

/* ── what is said of them ── */

static void log_open(struct mk_ws *ws, void *ctx)
{
    struct mk_str protocol = mk_ws_protocol(ws);
    (void)ctx;
    mk_log_info("wsprobe: open, protocol \"%.*s\"", MK_STR_ARG(protocol));
}

static void log_close(struct mk_ws *ws, unsigned code, struct mk_str reason, void *ctx)
{
    (void)ws;
    (void)ctx;
    mk_log_info("wsprobe: closed %u \"%.*s\"", code, MK_STR_ARG(reason));
}

/* ── handlers ── */

static void echo(struct mk_ws *ws, enum mk_ws_opcode opcode, char *data, size_t len, void *ctx)
{
    (void)ctx;
    mk_ws_send(ws, opcode, data, len);
}

static struct mk_ws_group *group_of(struct mk_ws *ws);

/* Says a message to the others of the channel, or moves: "/join 5". */
static void chat(struct mk_ws *ws, enum mk_ws_opcode opcode, char *data, size_t len, void *ctx)
{
    static const char join[] = "/join ";
    (void)ctx;
    if (len > sizeof(join) - 1 && memcmp(data, join, sizeof(join) - 1) == 0) {
        mk_ws_set_channel(ws, (int)strtol(data + sizeof(join) - 1, NULL, 10));
        mk_ws_send(ws, MK_WS_TEXT, "joined", 6);
    } else {
        mk_ws_broadcast(group_of(ws), mk_ws_channel(ws), opcode, data, len, ws);
    }
}

/* Says a message to all, the sender included. */
static void shout(struct mk_ws *ws, enum mk_ws_opcode opcode, char *data, size_t len, void *ctx)
{
    (void)ctx;
    mk_ws_broadcast(group_of(ws), MK_WS_ALL_CHANNELS, opcode, data, len, NULL);
}

/* Does what the message says: "close 4000 bye", "abort", "ping", "pause", "flood". */
static void obey(struct mk_ws *ws, enum mk_ws_opcode opcode, char *data, size_t len, void *ctx)
{
    char reason[200] = "";
    unsigned code = 0;
    (void)opcode;
    (void)len;
    (void)ctx;
    if (sscanf(data, "close %u %199[^\n]", &code, reason) >= 1 || strcmp(data, "close") == 0)
        mk_ws_close(ws, code, mk_str_c(reason));
    else if (strcmp(data, "abort") == 0)
        mk_ws_abort(ws);
    else if (strcmp(data, "ping") == 0)
        mk_ws_send(ws, MK_WS_PING, "are you there", 13);
    else
        mk_ws_send(ws, MK_WS_TEXT, "what?", 5);
}

/* Sends numbered messages of 1 KB for ever, as fast as the peer takes them. */
static void produce(struct mk_ws *ws, void *ctx)
{
    static _Thread_local char text[1025];
    static _Thread_local unsigned n;
    (void)ctx;
    do
        snprintf(text, sizeof(text), "%01024u", n++);
    while (mk_ws_send(ws, MK_WS_TEXT, text, 1024) == 0);
}

/* Echoes, and reads no more while the peer does not take its echoes. */
static void echo_patiently(struct mk_ws *ws, enum mk_ws_opcode opcode, char *data, size_t len, void *ctx)
{
    (void)ctx;
    if (mk_ws_send(ws, opcode, data, len) == MK_AGAIN)
        mk_ws_pause(ws);
}

static void resume(struct mk_ws *ws, void *ctx)
{
    (void)ctx;
    mk_ws_resume(ws);
}

static void log_ping(struct mk_ws *ws, enum mk_ws_opcode opcode, char *data, size_t len, void *ctx)
{
    (void)ws;
    (void)ctx;
    mk_log_info("wsprobe: %s \"%.*s\"", opcode == MK_WS_PING ? "ping" : "pong", (int)len, data);
}

/* ── the relay: "connect URL" opens a WebSocket to another server, and what follows is passed on ── */

struct relay {
    struct mk_ws *client, *server; /* NULL: not open */
};

static void end_relay(struct relay *relay)
{
    if (!relay->client && !relay->server)
        free(relay);
}

static void close_other(struct mk_ws *other, unsigned code, struct mk_str reason)
{
    if (other)
        mk_ws_close(other, code == MK_WS_NO_STATUS ? 0 : code == MK_WS_ABNORMAL ? MK_WS_INTERNAL_ERROR : code, reason);
}

static void greet_client(struct mk_ws *ws, void *ctx)
{
    struct relay *relay = ctx;
    char text[100];
    struct mk_str protocol = mk_ws_protocol(ws);
    int n = snprintf(text, sizeof(text), "open \"%.*s\"", MK_STR_ARG(protocol));
    if (relay->client)
        mk_ws_send(relay->client, MK_WS_TEXT, text, (size_t)n);
}

static void pass_to_client(struct mk_ws *ws, enum mk_ws_opcode opcode, char *data, size_t len, void *ctx)
{
    struct relay *relay = ctx;
    (void)ws;
    if (relay->client)
        mk_ws_send(relay->client, opcode, data, len);
}

static void lose_server(struct mk_ws *ws, unsigned code, struct mk_str reason, void *ctx)
{
    struct relay *relay = ctx;
    (void)ws;
    mk_log_info("wsprobe: the server closed %u \"%.*s\"", code, MK_STR_ARG(reason));
    relay->server = NULL;
    close_other(relay->client, code, reason);
    end_relay(relay);
}

static const struct mk_ws_settings relay_settings = {
    .handlers = {.on_open = greet_client, .on_message = pass_to_client, .on_close = lose_server},
    .protocols = "chat, superchat",
    .context_takeover = true,
    .close_ms = 3000,
    .message_bytes_max = 64 * 1024 * 1024,
    .queue_bytes_max = 65 * 1024 * 1024,
};

static void pass_to_server(struct mk_ws *ws, enum mk_ws_opcode opcode, char *data, size_t len, void *ctx)
{
    static const char connect[] = "connect ";
    struct relay *relay = ctx;
    const char *error;
    if (relay->server) {
        mk_ws_send(relay->server, opcode, data, len);
        return;
    }
    if (strncmp(data, connect, sizeof(connect) - 1) != 0)
        return;
    relay->server = mk_ws_connect(mk_ws_get_worker(ws), &relay_settings, data + sizeof(connect) - 1, MK_WS_ALL_CHANNELS,
                                  relay, &error);
    if (!relay->server)
        mk_ws_send(ws, MK_WS_TEXT, error, strlen(error));
}

static void begin_relay(struct mk_ws *ws, void *ctx)
{
    struct relay *relay = ctx;
    relay->client = ws;
}

static void lose_client(struct mk_ws *ws, unsigned code, struct mk_str reason, void *ctx)
{
    struct relay *relay = ctx;
    (void)ws;
    relay->client = NULL;
    close_other(relay->server, code, reason);
    end_relay(relay);
}

static const struct mk_ws_settings client_settings = {
    .handlers = {.on_open = begin_relay, .on_message = pass_to_server, .on_close = lose_client},
    .message_bytes_max = 64 * 1024 * 1024,
    .queue_bytes_max = 65 * 1024 * 1024,
};

static void open_relay(struct mk_request *req, struct mk_ws_worker *w)
{
    struct relay *relay = calloc(1, sizeof(*relay));
    if (!relay || !mk_ws_accept(req, w, &client_settings, MK_WS_ALL_CHANNELS, relay))
        free(relay);
}

/* ── endpoints ── */

struct endpoint {
    const char *path;
    int channel;
    struct mk_ws_settings settings;
};

#define HANDLERS(...) .handlers = {.on_open = log_open, .on_close = log_close, .on_ping = log_ping, __VA_ARGS__}

enum { MEGABYTE = 1024 * 1024 };

static const struct endpoint endpoints[] = {
    {"/ws/echo",
     MK_WS_ALL_CHANNELS,
     {HANDLERS(.on_message = echo), .message_bytes_max = 64 * MEGABYTE, .queue_bytes_max = 65 * MEGABYTE}},
    {"/ws/plain",
     MK_WS_ALL_CHANNELS,
     {HANDLERS(.on_message = echo), .no_deflate = true, .message_bytes_max = 64 * MEGABYTE,
      .queue_bytes_max = 65 * MEGABYTE}},
    {"/ws/context",
     MK_WS_ALL_CHANNELS,
     {HANDLERS(.on_message = echo), .context_takeover = true, .window_bits = 15, .deflate_bytes_min = 1}},
    {"/ws/small",
     MK_WS_ALL_CHANNELS,
     {HANDLERS(.on_message = echo), .message_bytes_max = 1000, .frame_bytes_max = 500}},
    {"/ws/protocols", MK_WS_ALL_CHANNELS, {HANDLERS(.on_message = echo), .protocols = "chat, superchat"}},
    {"/ws/origins",
     MK_WS_ALL_CHANNELS,
     {HANDLERS(.on_message = echo), .origins = "https://a.example, http://b.example:81"}},
    {"/ws/null", MK_WS_ALL_CHANNELS, {HANDLERS(.on_message = echo), .origins = "null"}},
    {"/ws/any", MK_WS_ALL_CHANNELS, {HANDLERS(.on_message = echo), .origins = "*"}},
    {"/ws/chat", 1, {HANDLERS(.on_message = chat)}},
    {"/ws/shout", MK_WS_ALL_CHANNELS, {HANDLERS(.on_message = shout), .close_ms = 3000}},
    {"/ws/patient",
     MK_WS_ALL_CHANNELS,
     {.handlers = {.on_open = log_open, .on_message = echo_patiently, .on_writable = resume, .on_close = log_close}}},
    {"/ws/drop",
     MK_WS_ALL_CHANNELS,
     {HANDLERS(.on_message = shout), .overflow = MK_WS_OVERFLOW_DROP, .queue_bytes_max = 64 * 1024}},
    {"/ws/obey", MK_WS_ALL_CHANNELS, {HANDLERS(.on_message = obey), .close_ms = 3000}},
    {"/ws/flood",
     MK_WS_ALL_CHANNELS,
     {.handlers = {.on_open = produce, .on_writable = produce, .on_close = log_close}}},
    {"/ws/alive", MK_WS_ALL_CHANNELS, {HANDLERS(.on_message = echo), .ping_ms = 100, .pong_ms = 2000}},
};

/* ── the plugin ── */

static struct mk_ws_group *group_of(struct mk_ws *ws)
{
    return mk_ws_get_group(mk_ws_get_worker(ws));
}

/* One group for all generations, so that broadcasts reach the WebSockets of older ones. */
static struct mk_ws_group *group;
static unsigned n_generations;

static int start(void **ret_state)
{
    if (!n_generations)
        group = mk_ws_group_new();
    if (!group)
        return -ENOMEM;
    n_generations++;
    *ret_state = group;
    return 0;
}

static void stop(void *state)
{
    if (--n_generations == 0)
        mk_ws_group_free(state);
}

static int start_worker(struct mk_worker *worker, void **ret_state)
{
    *ret_state = mk_ws_worker_get(group, mk_worker_loop(worker), mk_worker_account(worker), NULL, NULL);
    return *ret_state ? 0 : -ENOMEM;
}

static void stop_worker(struct mk_worker *worker, void *state)
{
    (void)worker;
    mk_ws_worker_put(state);
}

static int handle_request(struct mk_request *req)
{
    struct mk_ws_worker *w = mk_worker_state(mk_request_worker(req), &mk_plugin_wsprobe);
    if (mk_str_eq(mk_request_path(req), MK_STR("/ws/relay"))) {
        open_relay(req, w);
        return 0;
    }
    for (size_t i = 0; i < sizeof(endpoints) / sizeof(endpoints[0]); i++) {
        const struct endpoint *e = &endpoints[i];
        if (!mk_str_eq(mk_request_path(req), mk_str_c(e->path)))
            continue;
        mk_ws_accept(req, w, &e->settings, e->channel, NULL);
        return 0;
    }
    return MK_DECLINED;
}

MK_PLUGIN(wsprobe) = {
    MK_PLUGIN_HEAD("wsprobe", "1.0", "WebSockets for tests"),
    .start = start,
    .stop = stop,
    .worker_start = start_worker,
    .worker_stop = stop_worker,
    .on_content = handle_request,
};

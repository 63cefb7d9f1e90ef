// SPDX-License-Identifier: Apache-2.0
/*
 * WebSockets to other servers: a connection of our own as the stream, and the client's side of the handshake.
 *
 *     mk_ws_connect ─► dial ─► request ─► response ─► mk_ws_run()
 *                      └──────── a timer bounds these ────┘
 */
#include "ws.h"

#include <monkey/base/response_parser.h>

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* ── the handshake ── */

/* ── the URL ── */

int mk__ws_url_parse(struct mk_str url, struct mk__ws_url *ret, const char **ret_error)
{
    struct mk_str scheme = MK_STR("ws://");
    *ret_error = "the URL does not begin with ws://";
    if (mk_str_istarts(url, MK_STR("wss://")))
        *ret_error = "wss:// is not supported";
    if (!mk_str_istarts(url, scheme))
        return -EINVAL;
    struct mk_str rest = mk_str_after(url, scheme.len);
    struct mk_str authority = mk_str_until(rest, "/?");
    *ret = (struct mk__ws_url){authority, mk_str_after(rest, authority.len)};
    *ret_error = "the URL has characters that must be percent-encoded";
    if (!mk_str_is_visible(rest, "#"))
        return -EINVAL;
    *ret_error = "the URL has no host";
    return authority.len ? 0 : -EINVAL;
}

/* ── the request ── */

int mk__ws_client_request(struct mk_arena *arena, const struct mk__ws_url *url, const struct mk_ws_settings *settings,
                          char key[MK_WS_KEY_BYTES + 1], struct mk_str *ret_request)
{
    const struct mk__ws_deflate_params ours = mk__ws_deflate_params_of(settings);
    const char *protocols = settings->protocols ? settings->protocols : "";
    size_t size = 512 + url->target.len + url->authority.len + strlen(protocols);
    char *storage = mk_arena_alloc(arena, size);
    struct mk_buf out;
    if (!storage)
        return -ENOMEM;
    uint8_t nonce[MK_WS_NONCE_BYTES] = {0};
    mk__ws_fill_random(nonce, sizeof(nonce));
    mk_ws_key_make(key, nonce);
    mk_buf_init_fixed(&out, storage, size);
    mk_buf_addf(&out, "GET %s%.*s HTTP/1.1\r\nHost: %.*s\r\n", url->target.len && url->target.p[0] == '/' ? "" : "/",
                MK_STR_ARG(url->target), MK_STR_ARG(url->authority));
    mk_buf_addf(&out, "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n");
    mk_buf_addf(&out, "Sec-WebSocket-Key: %s\r\n", key);
    if (*protocols)
        mk_buf_addf(&out, "Sec-WebSocket-Protocol: %s\r\n", protocols);
    if (ours.on) {
        mk_buf_addf(&out, "Sec-WebSocket-Extensions: ");
        mk__ws_deflate_write_offer(&out, &ours);
        mk_buf_addf(&out, "\r\n");
    }
    mk_buf_addf(&out, "\r\n");
    assert(!out.err); /* `size` is enough */
    *ret_request = mk_buf_str(&out);
    return 0;
}

/* ── the response ── */

enum { FIELDS_MAX = 64 };

static const struct mk_response_limits limits = {.head_bytes_max = MK__WS_CLIENT_HEAD_MAX, .fields_max = FIELDS_MAX};

/* What a response says. */
struct answer {
    struct mk_str upgrade, connection, accept, protocol;
    struct mk__ws_deflate_params deflate;
};

static int take_field(struct answer *a, struct mk_str name, struct mk_str value,
                      const struct mk__ws_deflate_params *ours, const char **ret_reason)
{
    if (mk_str_ieq(name, MK_STR("Sec-WebSocket-Extensions")))
        return mk__ws_deflate_check(value, ours, &a->deflate, ret_reason) < 0 ? -EPROTO : 0;
    struct {
        const char *name;
        struct mk_str *value;
    } rows[] = {{"Upgrade", &a->upgrade},
                {"Connection", &a->connection},
                {"Sec-WebSocket-Accept", &a->accept},
                {"Sec-WebSocket-Protocol", &a->protocol}};
    for (size_t i = 0; i < MK_COUNT_OF(rows); i++) {
        if (!mk_str_ieq(name, mk_str_c(rows[i].name)))
            continue;
        *ret_reason = "the server's response has a field twice";
        if (rows[i].value->p)
            return -EPROTO;
        *rows[i].value = value;
    }
    return 0;
}

/* Parses the head. Returns 0, MK_AGAIN or -EPROTO. */
static int read_head(struct mk_str in, struct answer *ret, const struct mk__ws_deflate_params *ours, size_t *ret_size,
                     const char **ret_reason)
{
    struct mk_response_parser p;
    struct mk_field fields[FIELDS_MAX];
    mk_response_parser_init(&p, &limits, MK_RESPONSE_TO_OTHER);
    int r = mk_response_parser_head(&p, fields, in);
    if (r != 0) {
        *ret_reason = r == -EMSGSIZE ? "the server's response head is too long" : "the server's response is malformed";
        return r < 0 ? -EPROTO : r;
    }
    *ret_reason = "the server does not accept the WebSocket";
    if (p.status != 101 || p.minor == 0)
        return -EPROTO;
    for (unsigned i = 0; i < p.n_fields && r == 0; i++)
        r = take_field(ret, mk_span_str(in.p, fields[i].name), mk_span_str(in.p, fields[i].value), ours, ret_reason);
    *ret_size = p.head_bytes;
    return r;
}

/* Checks the fields of RFC 6455 section 4.1. Returns NULL, or what is wrong. */
static const char *check_answer(const struct answer *a, const char *key, struct mk_str offered,
                                struct mk_str *ret_protocol)
{
    char accept[MK_WS_ACCEPT_BYTES + 1];
    mk_ws_accept_key(accept, mk_str_c(key));
    if (!mk_str_list_has(a->upgrade, MK_STR("websocket")) || !mk_str_list_has(a->connection, MK_STR("upgrade")))
        return "the server does not speak WebSocket";
    if (!mk_str_eq(a->accept, mk_str_c(accept)))
        return "the server's Sec-WebSocket-Accept is wrong";
    *ret_protocol = mk__ws_find_protocol(offered, a->protocol);
    if (a->protocol.p && !ret_protocol->len)
        return "the server has chosen a subprotocol that was not offered";
    return NULL;
}

int mk__ws_client_check(struct mk_str in, const char *key, const struct mk_ws_settings *settings,
                        struct mk_ws_negotiated *ret, size_t *ret_size, const char **ret_reason)
{
    const struct mk__ws_deflate_params ours = mk__ws_deflate_params_of(settings);
    struct mk_str offered = settings->protocols ? mk_str_c(settings->protocols) : MK_STR_NONE;
    struct answer answer = {0};
    int r = read_head(in, &answer, &ours, ret_size, ret_reason);
    if (r != 0)
        return r;
    *ret = (struct mk_ws_negotiated){.is_client = true};
    const char *wrong = check_answer(&answer, key, offered, &ret->protocol);
    if (wrong) {
        *ret_reason = wrong;
        return -EPROTO;
    }
    ret->deflate = answer.deflate.on;
    ret->send_context = !answer.deflate.client_no_context;
    ret->receive_context = !answer.deflate.server_no_context;
    ret->send_bits = answer.deflate.client_bits;
    ret->receive_bits = answer.deflate.server_bits;
    return 0;
}

/* ── the connection ── */

enum { ARENA_BYTES_MAX = 16 * 1024 };

enum client_state { CLIENT_DIALS, CLIENT_ASKS, CLIENT_OPEN };

struct client {
    struct mk_ws *ws;
    struct mk_ws_worker *worker;
    enum client_state state;
    struct mk_arena arena;
    struct mk__ws_url url;
    char key[MK_WS_KEY_BYTES + 1];
    const struct mk_dial_target *target;
    struct mk_dial dial;
    struct mk_event event; /* fd -1: not connected */
    struct mk_timer timer;
    struct mk_task task;
    uint32_t events;       /* of epoll, that have not been passed on */
    struct mk_str request; /* what of it is left to send */
    char *head;            /* the response, and what follows it; in the arena */
    size_t head_len, head_taken;
};

/* ── the stream ── */

static ssize_t read_client(void *stream, void *to, size_t size)
{
    struct client *c = stream;
    size_t left = c->head_len - c->head_taken;
    if (left) { /* frames that came with the response */
        size_t n = left < size ? left : size;
        memcpy(to, c->head + c->head_taken, n);
        c->head_taken += n;
        return (ssize_t)n;
    }
    ssize_t n = recv(c->event.fd, to, size, MSG_DONTWAIT);
    return n < 0 ? -errno : n;
}

static ssize_t write_client(void *stream, const void *from, size_t size)
{
    struct client *c = stream;
    ssize_t n = c->state == CLIENT_OPEN ? send(c->event.fd, from, size, MSG_DONTWAIT | MSG_NOSIGNAL) : -1;
    return n < 0 ? (c->state == CLIENT_OPEN ? -errno : -EAGAIN) : n;
}

static void wake_client(void *stream)
{
    struct client *c = stream;
    mk_task_schedule(c->worker->loop, &c->task);
}

static void end_client(void *stream)
{
    struct client *c = stream;
    struct mk_account *account = c->worker->account;
    mk_dial_cancel(&c->dial);
    mk_timer_cancel(&c->timer);
    mk_task_cancel(&c->task);
    if (c->event.fd >= 0) {
        mk_event_del(c->worker->loop, &c->event);
        close(c->event.fd);
    }
    mk_arena_release(&c->arena);
    mk_account_free(account, c, sizeof(*c));
}

static const struct mk_ws_stream_ops client_ops = {
    .read = read_client,
    .write = write_client,
    .wake = wake_client,
    .end = end_client,
};

/* ── the handshake ── */

/* Ends a WebSocket that was not opened; `c` is gone then. */
static void fail_client(struct client *c, const char *reason)
{
    mk__ws_fail_stream(c->ws, reason);
}

static void send_request(struct client *c)
{
    while (c->request.len) {
        ssize_t n = send(c->event.fd, c->request.p, c->request.len, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno == EAGAIN)
            return;
        if (n < 0) {
            fail_client(c, strerror(errno));
            return;
        }
        c->request = mk_str(c->request.p + n, c->request.len - (size_t)n);
    }
}

/* Checks the response head, if it is complete. Returns MK_AGAIN if it is not. */
static int take_response(struct client *c)
{
    struct mk_ws_negotiated negotiated;
    const char *reason = NULL;
    struct mk_str in = mk_str(c->head, c->head_len);
    int r = mk__ws_client_check(in, c->key, c->ws->settings, &negotiated, &c->head_taken, &reason);
    if (r < 0)
        fail_client(c, reason);
    if (r != 0)
        return r;
    c->state = CLIENT_OPEN;
    mk_timer_cancel(&c->timer);
    mk__ws_negotiate_late(c->ws, &negotiated);
    mk_ws_run(c->ws, MK_TUNNEL_READ | MK_TUNNEL_WRITE);
    return 0;
}

static void read_response(struct client *c)
{
    int r = MK_AGAIN;
    while (r == MK_AGAIN) {
        ssize_t n = recv(c->event.fd, c->head + c->head_len, MK__WS_CLIENT_HEAD_MAX - c->head_len, MSG_DONTWAIT);
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0) {
            fail_client(c, n < 0 ? strerror(errno) : "the server has closed the connection during the handshake");
            return;
        }
        c->head_len += (size_t)n;
        r = take_response(c);
    }
}

/* ── events ── */

static void take_events(void *arg)
{
    struct client *c = arg;
    uint32_t events = c->events;
    c->events = 0;
    mk__ws_enter(c->ws); /* a failure frees `c`, but not before mk__ws_leave() */
    struct mk_ws *ws = c->ws;
    if (c->state == CLIENT_ASKS && events & EPOLLOUT)
        send_request(c);
    if (c->state == CLIENT_ASKS && events & (EPOLLIN | EPOLLHUP | EPOLLERR | EPOLLRDHUP) && !ws->is_failed)
        read_response(c);
    else if (c->state == CLIENT_OPEN)
        mk_ws_run(ws, (events & EPOLLOUT ? MK_TUNNEL_WRITE : 0) | (events & ~(uint32_t)EPOLLOUT ? MK_TUNNEL_READ : 0));
    mk__ws_leave(ws);
}

static void on_event(struct mk_event *event, uint32_t events)
{
    struct client *c = MK_CONTAINER_OF(event, struct client, event);
    c->events |= events;
    mk__ws_call(c->worker, take_events, c);
}

static void on_task(struct mk_task *task)
{
    struct client *c = MK_CONTAINER_OF(task, struct client, task);
    mk__ws_call(c->worker, take_events, c);
}

static void end_by_timer(void *arg)
{
    struct client *c = arg;
    struct mk_ws *ws = c->ws;
    mk__ws_enter(ws);
    fail_client(c, "the server does not answer");
    mk__ws_leave(ws);
}

static void on_timer(struct mk_timer *timer)
{
    struct client *c = MK_CONTAINER_OF(timer, struct client, timer);
    mk__ws_call(c->worker, end_by_timer, c);
}

static void take_connection(void *arg)
{
    struct client *c = arg;
    struct mk_ws *ws = c->ws;
    mk__ws_enter(ws);
    c->state = CLIENT_ASKS;
    if (c->event.fd < 0)
        fail_client(c, mk_dial_error(c->event.fd));
    else if (mk_event_add(c->worker->loop, &c->event, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET) < 0)
        fail_client(c, "the connection cannot be watched");
    mk__ws_leave(ws);
}

static void on_connected(struct mk_dial *dial, int fd)
{
    struct client *c = MK_CONTAINER_OF(dial, struct client, dial);
    c->event.fd = fd;
    mk__ws_call(c->worker, take_connection, c);
}

/* ── */

/* Prepares target and request. Returns 0, -EINVAL or -ENOMEM with a phrase. */
static int prepare_client(struct client *c, struct mk_str url, const char **ret_error)
{
    int err = mk__ws_url_parse(url, &c->url, ret_error);
    if (err < 0)
        return err;
    err = mk_dial_target_parse(&c->arena, c->url.authority, 80, &c->target, ret_error);
    if (err < 0)
        return err;
    c->head = mk_arena_alloc(&c->arena, MK__WS_CLIENT_HEAD_MAX);
    *ret_error = "no memory";
    if (!c->head || mk__ws_client_request(&c->arena, &c->url, c->ws->settings, c->key, &c->request) < 0)
        return -ENOMEM;
    return 0;
}

static struct client *make_client(struct mk_ws_worker *worker)
{
    struct client *c = mk_account_alloc(worker->account, sizeof(*c));
    if (!c)
        return NULL;
    *c = (struct client){.worker = worker, .event = {.ready = on_event, .fd = -1}};
    mk_arena_init(&c->arena, worker->account, ARENA_BYTES_MAX, NULL, 0);
    mk_timer_init(&c->timer, on_timer);
    mk_task_init(&c->task, on_task);
    return c;
}

struct mk_ws *mk_ws_connect(struct mk_ws_worker *worker, const struct mk_ws_settings *settings, const char *url,
                            int channel, void *ctx, const char **ret_error)
{
    const struct mk_ws_negotiated negotiated = {.is_client = true};
    struct client *c = make_client(worker);
    *ret_error = "no memory";
    if (!c)
        return NULL;
    c->ws = mk_ws_open(worker, settings, &negotiated, channel, ctx, &client_ops, c);
    if (!c->ws) {
        end_client(c);
        return NULL;
    }
    if (prepare_client(c, mk_str_c(url), ret_error) < 0) {
        mk__ws_discard(c->ws);
        end_client(c);
        return NULL;
    }
    mk_timer_arm(worker->loop, &c->timer, MK_DIAL_TIMEOUT_MS);
    mk_dial_start(&c->dial, worker->loop, c->target, NULL, on_connected);
    return c->ws;
}

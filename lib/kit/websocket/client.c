// SPDX-License-Identifier: Apache-2.0
/*
 * WebSockets to other servers: a connection of our own as the stream, and the client's side of the handshake.
 *
 *     mk_ws_connect ─► dial ─► request ─► response ─► mk_ws_run()
 *                      └──────── a timer bounds these ────┘
 */
#include "client_head.h"
#include "ws.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

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

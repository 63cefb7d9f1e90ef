// SPDX-License-Identifier: Apache-2.0
/*
 * The state machine of a connection (http/conn.h): the table of states, their timeouts, and how connections are opened
 * and closed.
 */
#include "http/conn.h"

#include "http/handshake.h"
#include "loop/loop.h"

#include <monkey/log.h>

#include <assert.h>
#include <errno.h>

enum { EDGES = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET };

#define TO(state) (1u << (MK__CONN_##state))
/* One turn may serve several requests, so that it can end at any state of its protocol. */
#define HTTP1 \
    (TO(READ_HEAD) | TO(READ_BODY) | TO(HANDLER) | TO(DISK) | TO(WRITE) | TO(IDLE) | TO(TUNNEL) | TO(LINGER) | \
     TO(CLOSED))
#define HTTP2 (TO(READ_HEAD) | TO(STREAMS) | TO(H2_WRITE) | TO(IDLE) | TO(LINGER) | TO(CLOSED))

enum { READ = MK__CONN_WANT_READ, WRITE = MK__CONN_WANT_WRITE };

/* clang-format off */
const struct mk__conn_state_info mk__conn_states[MK__CONN_STATES] = {
    [MK__CONN_CLOSED] = {"closed", 0, MK__TIMEOUTS, .next = 0},
    [MK__CONN_HANDSHAKE] = {"handshake", READ | WRITE, MK__TIMEOUT_HANDSHAKE, .evict = MK__CONN_EVICT_LAST,
                            .next = TO(HANDSHAKE) | TO(NEW) | TO(CLOSED)},
    [MK__CONN_NEW] = {"new", READ, MK__TIMEOUT_HEAD, .evict = MK__CONN_EVICT_LAST,
                      .next = HTTP1 | HTTP2 | TO(NEW)},
    [MK__CONN_IDLE] = {"idle", READ, MK__TIMEOUT_IDLE, .evict = MK__CONN_EVICT_FIRST, .next = HTTP1 | HTTP2},
    [MK__CONN_READ_HEAD] = {"read_head", READ, MK__TIMEOUT_HEAD, .evict = MK__CONN_EVICT_LAST, .timeout_status = 408,
                            .next = HTTP1 | HTTP2 | TO(NEW)},
    [MK__CONN_READ_BODY] = {"read_body", READ, MK__TIMEOUT_BODY, .restarts = true, .timeout_status = 408,
                            .next = HTTP1},
    [MK__CONN_HANDLER] = {"handler", 0, MK__TIMEOUT_HANDLER, .restarts = true, .timeout_status = 503, .next = HTTP1},
    [MK__CONN_DISK] = {"disk", 0, MK__TIMEOUT_HANDLER, .timeout_status = 503, .next = HTTP1},
    [MK__CONN_WRITE] = {"write", WRITE, MK__TIMEOUT_SEND, .restarts = true, .next = HTTP1},
    [MK__CONN_TUNNEL] = {"tunnel", READ | WRITE, MK__TIMEOUT_TUNNEL, .restarts = true,
                         .next = TO(TUNNEL) | TO(WRITE) | TO(LINGER) | TO(CLOSED)},
    [MK__CONN_STREAMS] = {"streams", READ | WRITE, MK__TIMEOUTS, .next = HTTP2},
    [MK__CONN_H2_WRITE] = {"h2_write", READ | WRITE, MK__TIMEOUT_SEND, .restarts = true, .next = HTTP2 | TO(NEW)},
    [MK__CONN_LINGER] = {"linger", READ, MK__TIMEOUT_LINGER, .evict = MK__CONN_EVICT_FIRST,
                         .next = TO(LINGER) | TO(CLOSED)},
};
/* clang-format on */

/* ── states and events ── */

static void free_conn(struct mk_task *task)
{
    struct mk__conn *c = MK_CONTAINER_OF(task, struct mk__conn, task);
    mk__pool_put(&c->http->connections, c);
}

static struct mk_connection public_view(struct mk__conn *c)
{
    return (struct mk_connection){.io = &c->sock.io, .peer = &c->peer, .http = c->http, .id = &c->id};
}

/*
 * Shows a new connection to the accept hooks. Returns false if one of them refused it, or if the client has already
 * disconnected.
 */
static bool run_accept_hooks(struct mk__conn *c)
{
    struct mk_connection conn = public_view(c);
    c->peer.refused = !mk__client_addr_init(&c->peer, &c->sock.io) ||
                      (c->http->settings->notify_accept && c->http->app->on_accept(&conn, c->http->app_ctx) < 0);
    return !c->peer.refused;
}

static void run_close_hooks(struct mk__conn *c)
{
    struct mk_connection conn = public_view(c);
    if (c->http->settings->notify_close && !c->peer.refused)
        c->http->app->on_close(&conn, c->http->app_ctx);
}

static void close_conn(struct mk__conn *c)
{
    struct mk__context *http = c->http;
    c->proto->close(c);
    if (MK_HAS_CONN_HOOKS)
        run_close_hooks(c);
    mk_timer_cancel(&c->timer);
    mk_list_del(&c->link);
    http->conns_in_drain -= c->accepted_in_drain;
    if (c->registered)
        mk_event_del(http->loop, &c->event);
    mk__sock_close(&c->sock, http->account);
    http->app->on_conn_freed(http->app_ctx);
    mk_task_cancel(&c->task);
    mk_task_init(&c->task, free_conn);
    mk__loop_defer_free(http->loop, &c->task);
}

/* Returns the body bytes received and sent in the current exchange, minus the output that the socket has not taken. */
static uint64_t count_moved_bytes(const struct mk__conn *c)
{
    uint64_t bytes = c->req ? c->req->sent_bytes + c->req->body_bytes : 0;
    return bytes + c->stream_bytes - (c->sock.held_len - c->sock.held_at);
}

/*
 * Arms the timer of the current state. It runs from when the state was entered, and restarts with each request. Body
 * bytes in either direction restart it too; bytes of a head do not.
 */
static void arm_timer(struct mk__conn *c, enum mk__conn_state before)
{
    const struct mk__conn_state_info *info = &mk__conn_states[c->state];
    bool restarts = (info->restarts && count_moved_bytes(c) != c->armed_bytes) || c->requests != c->armed_requests;
    c->armed_requests = c->requests;
    c->armed_bytes = count_moved_bytes(c);
    if (c->state == MK__CONN_READ_BODY &&
        (before == MK__CONN_HANDLER || before == MK__CONN_WRITE || before == MK__CONN_DISK)) {
        /* the time that the client waited for us does not count for MinBodyRate */
        c->req->rate_since_ms = mk_loop_now_ms(c->http->loop);
        c->req->rate_bytes = 0;
    }
    if (info->timeout == MK__TIMEOUTS) {
        mk_timer_cancel(&c->timer);
        return;
    }
    if (before != c->state || restarts) {
        const struct mk__http_limits *limits = c->req ? c->req->limits : &c->http->settings->limits;
        mk_timer_arm(c->http->loop, &c->timer, limits->timeout_ms[info->timeout]);
    }
}

static void end_handshake(struct mk__conn *c)
{
    mk_list_del(&c->handshaking);
    c->http->handshakes--;
}

static void enter_state(struct mk__conn *c, enum mk__conn_state state)
{
    enum mk__conn_state before = c->state;
    assert(mk__conn_states[before].next & 1u << state);
    mk_log_debug("connection %d: %s to %s", c->event.fd, mk__conn_states[before].name, mk__conn_states[state].name);
    c->state = (uint8_t)state;
    if (MK_HAS_TLS && before == MK__CONN_HANDSHAKE && state != MK__CONN_HANDSHAKE)
        end_handshake(c);
    if (state == MK__CONN_CLOSED) {
        close_conn(c);
        return;
    }
    arm_timer(c, before);
    if (c->registered)
        return;
    c->registered = true;
    if (mk_event_add(c->http->loop, &c->event, EDGES) < 0) {
        c->registered = false;
        enter_state(c, MK__CONN_CLOSED);
    }
}

/* ── turns ── */

bool mk__conn_can_switch(struct mk__conn *c)
{
    struct mk__context *http = c->http;
    if (!http->second_proto && http->settings->h2)
        http->second_proto = http->app->load_second_proto();
    return http->second_proto && http->settings->h2;
}

enum mk__conn_state mk__conn_switch_proto(struct mk__conn *c, struct mk_str in)
{
    c->proto = c->http->second_proto;
    return c->proto->begin(c, in);
}

/* Tells whether the handshake has selected the second protocol (ALPN). */
static bool has_negotiated_second(const struct mk__conn *c)
{
    const struct mk_transport *transport = c->sock.io.transport;
    if (c->state != MK__CONN_NEW || c->proto != c->http->app->first_proto || !transport->protocol)
        return false;
    return mk_str_eq(transport->protocol(&c->sock.io), c->http->app->second_alpn);
}

static enum mk__conn_state dispatch_turn(struct mk__conn *c)
{
    if (c->state == MK__CONN_LINGER)
        return MK__CONN_LINGER;
    if (MK_HAS_HTTP2 && has_negotiated_second(c)) /* a reload may have disabled it since: the client reconnects */
        return mk__conn_can_switch(c) ? mk__conn_switch_proto(c, MK_STR_NONE) : MK__CONN_CLOSED;
    return c->proto->on_ready(c);
}

/* Takes a step of the handshake, if this turn has one left. Returns true when the handshake is complete. */
static bool continue_handshake(struct mk__conn *c)
{
    if (!mk__handshake_can_step(c))
        return false;
    int r = mk__handshake_run_step(c);
    bool waits = r == -EAGAIN || r == -EINPROGRESS;
    c->sock.readable = !waits;
    c->handshake_wants_write = r == -EINPROGRESS;
    if (waits && c->sock.hung_up)
        mk_task_schedule(c->http->loop,
                         &c->task); /* no further edge will come, but the end of the input has not been read */
    enter_state(c, waits ? MK__CONN_HANDSHAKE : r < 0 ? MK__CONN_CLOSED : MK__CONN_NEW);
    return r == 0;
}

static void begin_handshake(struct mk__conn *c)
{
    struct mk__context *http = c->http;
    c->state = MK__CONN_HANDSHAKE;
    mk_list_add(&http->handshaking, &c->handshaking);
    http->handshakes++;
    while (http->handshakes > http->settings->handshakes_max) /* several, if a reload has lowered the limit */
        enter_state(MK_LIST_FIRST(&http->handshaking, struct mk__conn, handshaking), MK__CONN_CLOSED);
}

static void end_turn(struct mk__conn *c, enum mk__conn_state next)
{
    if (next == MK__CONN_LINGER)
        next = mk__conn_linger(c);
    c->running = false;
    enter_state(c, next);
}

static void run_turn(struct mk__conn *c)
{
    if (MK_HAS_TLS && c->state == MK__CONN_HANDSHAKE && !continue_handshake(c))
        return;
    mk_task_cancel(&c->task);
    c->running = true;
    end_turn(c, dispatch_turn(c));
}

static void on_task(struct mk_task *task)
{
    run_turn(MK_CONTAINER_OF(task, struct mk__conn, task));
}

static void on_event(struct mk_event *event, uint32_t events)
{
    struct mk__conn *c = MK_CONTAINER_OF(event, struct mk__conn, event);
    const struct mk__conn_state_info *wait = &mk__conn_states[c->state];

    if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
        c->sock.readable = true;
    if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
        c->sock.hung_up = true;
    if (events & EPOLLOUT)
        c->sock.writable = true;
    if (MK_HAS_TLS && c->state == MK__CONN_HANDSHAKE && !c->sock.readable && !c->handshake_wants_write)
        return; /* only writable, and the handshake waits for input */
    if (events & (EPOLLHUP | EPOLLERR) && !(wait->want & MK__CONN_WANT_READ))
        enter_state(c, MK__CONN_CLOSED); /* both directions are closed: no response can be sent */
    else if ((wait->want & MK__CONN_WANT_READ && c->sock.readable) ||
             (wait->want & MK__CONN_WANT_WRITE && c->sock.writable))
        run_turn(c);
}

static void on_timer(struct mk_timer *timer)
{
    struct mk__conn *c = MK_CONTAINER_OF(timer, struct mk__conn, timer);
    if (c->state == MK__CONN_HANDSHAKE || c->state == MK__CONN_LINGER) {
        enter_state(c, MK__CONN_CLOSED);
        return;
    }
    c->running = true;
    end_turn(c, c->proto->on_timeout(c));
}

/* Handed over by the accept thread. The first edge is consumed, so copy the readiness from `events`. */
static void take_handoff(struct mk__conn *c, uint32_t events)
{
    if (!events)
        return;
    c->registered = true;
    c->sock.hung_up = events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR);
    c->sock.readable = c->sock.hung_up || events & EPOLLIN;
}

int mk__conn_open(struct mk__context *http, const struct mk_io *io, struct mk_worker *worker)
{
    struct mk__conn *c = mk__pool_get(&http->connections);
    struct mk_io own = *io;
    int err = c ? 0 : -ENOMEM;
    if (err == 0 && own.transport->open)
        err = own.transport->open(&own, worker);
    if (err < 0) {
        own.transport->close(&own);
        if (c)
            mk__pool_put(&http->connections, c);
        http->app->on_conn_freed(http->app_ctx);
        return err;
    }
    *c = (struct mk__conn){.event = {on_event, own.fd},
                           .http = http,
                           .proto = http->app->first_proto,
                           .state = MK__CONN_NEW};
    c->accepted_in_drain = http->draining && http->accept_in_drain;
    http->conns_in_drain += c->accepted_in_drain;
    c->sock = (struct mk__sock){.io = own, .readable = true, .writable = true};
    if (MK_HAS_BALANCE && http->loop->handoff)
        take_handoff(c, mk__handoff_take(http->loop->handoff, &c->event));
    mk_timer_init(&c->timer, on_timer);
    mk_task_init(&c->task, on_task);
    mk_list_add(&http->conns, &c->link);
    bool accepted = !MK_HAS_CONN_HOOKS || run_accept_hooks(c);
    if (MK_HAS_TLS && accepted && own.transport->handshake)
        begin_handshake(c);
    mk_timer_arm(http->loop, &c->timer, http->settings->limits.timeout_ms[mk__conn_states[c->state].timeout]);
    if (!accepted) {
        enter_state(c, MK__CONN_CLOSED);
        return 0;
    }
    run_turn(c);
    return 0;
}

/* Whether a change of the settings, or a shutdown, is announced by a turn of its own. */
static bool announces_changes(const struct mk__conn *c)
{
    return c->state == MK__CONN_TUNNEL || (c->proto->announces_changes && c->state != MK__CONN_LINGER);
}

void mk__conn_apply_settings(struct mk__context *http)
{
    struct mk_list *n, *save;
    if (http->second_proto)
        http->second_proto->log_totals(http);
    MK_LIST_EACH(&http->conns, n, save) {
        struct mk__conn *c = MK_CONTAINER_OF(n, struct mk__conn, link);
        if (announces_changes(c) && c->state != MK__CONN_TUNNEL)
            mk_task_schedule(http->loop, &c->task);
    }
}

void mk__conn_retire_all(struct mk__context *http)
{
    struct mk_list *n, *save;
    http->retiring = true;
    MK_LIST_EACH(&http->conns, n, save) {
        struct mk__conn *c = MK_CONTAINER_OF(n, struct mk__conn, link);
        if (announces_changes(c))
            run_turn(c);
    }
}

void mk__conn_drain_all(struct mk__context *http)
{
    struct mk_list *n, *save;
    http->draining = true;
    MK_LIST_EACH(&http->conns, n, save) {
        struct mk__conn *c = MK_CONTAINER_OF(n, struct mk__conn, link);
        bool waits = c->state == MK__CONN_IDLE || c->state == MK__CONN_NEW;
        if (!waits && !announces_changes(c))
            continue;
        c->sock.readable |= waits; /* a request may have arrived already: try to read it */
        run_turn(c);
    }
}

bool mk__conn_all_drained(const struct mk__context *http)
{
    if (mk_list_empty(&http->conns))
        return true;
    return MK_LIST_FIRST(&http->conns, struct mk__conn, link)->accepted_in_drain; /* the first is the oldest */
}

/* Closes up to `n` connections, the oldest first, whose states have this rank; returns how many. */
static unsigned evict(struct mk__context *http, enum mk__conn_evict rank, unsigned n)
{
    struct mk_list *node, *save;
    unsigned closed = 0;
    MK_LIST_EACH(&http->conns, node, save) {
        struct mk__conn *c = MK_CONTAINER_OF(node, struct mk__conn, link);
        if (closed == n)
            break;
        if (mk__conn_states[c->state].evict != rank || c->running)
            continue;
        enter_state(c, MK__CONN_CLOSED);
        closed++;
    }
    return closed;
}

unsigned mk__conn_close_idle(struct mk__context *http, unsigned n)
{
    unsigned closed = evict(http, MK__CONN_EVICT_FIRST, n);
    if (closed)
        return closed;
    struct mk__conn *c = MK_HAS_HTTP2 && http->second_proto ? http->second_proto->evict(http) : NULL;
    if (!c)
        return evict(http, MK__CONN_EVICT_LAST, n);
    enter_state(c, MK__CONN_CLOSED);
    return 1;
}

void mk__conn_abort_all(struct mk__context *http)
{
    while (!mk_list_empty(&http->conns))
        enter_state(MK_LIST_FIRST(&http->conns, struct mk__conn, link), MK__CONN_CLOSED);
}

/* ── closing ── */

enum { LINGER_BYTES_MAX = 64 * 1024 * 1024, LINGER_BYTES_PER_TURN = 256 * 1024 };

/*
 * Sends the end message of the transport (TLS: close_notify), if it has one. Returns false if the socket is full; the
 * rest of the message is held back then.
 */
static bool send_close_notify(struct mk__conn *c)
{
    const struct mk_transport *transport = c->sock.io.transport;
    if (!MK_HAS_TLS || !transport->close_notify)
        return true;
    transport->close_notify(&c->sock.io);
    return mk__sock_flush(&c->sock, &c->http->out, c->http->account, 0) != MK_AGAIN;
}

/*
 * After a close(), input that arrives makes the kernel send a reset and drop unsent output: the client would lose the
 * end of its response. So close at once only if no input can arrive or all output has been sent.
 */
enum mk__conn_state mk__conn_begin_close(struct mk__conn *c)
{
    bool idle = (c->state == MK__CONN_IDLE || c->state == MK__CONN_NEW) && c->requests == c->armed_requests;
    bool client_done = c->sock.ended || (c->client_will_close && !c->unread_input);
    bool needs_notify = !(c->sock.ended && idle);
    if (needs_notify && !send_close_notify(c)) {
        c->closing = true;
        return MK__CONN_WRITE; /* called again when the socket is writable */
    }
    if (client_done || (idle && !c->unread_input && mk__sock_unsent(&c->sock) == 0))
        return MK__CONN_CLOSED;
    c->sock.io.transport->shutdown(&c->sock.io);
    c->sock.readable = true;
    return MK__CONN_LINGER;
}

enum mk__conn_state mk__conn_linger(struct mk__conn *c)
{
    struct mk__scratch *scratch = &c->http->in;
    for (size_t now = 0; c->sock.readable; now += scratch->size) {
        if (now >= LINGER_BYTES_PER_TURN) {
            mk_task_schedule(c->http->loop, &c->task);
            break;
        }
        ssize_t n = mk__sock_read(&c->sock, scratch->data, scratch->size);
        if (n == -EAGAIN)
            break;
        if (n <= 0)
            return MK__CONN_CLOSED;
        c->discarded_bytes += (uint32_t)n;
    }
    return c->discarded_bytes < LINGER_BYTES_MAX ? MK__CONN_LINGER : MK__CONN_CLOSED;
}

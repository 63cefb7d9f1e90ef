// SPDX-License-Identifier: Apache-2.0
/*
 * The state machine of a connection (http/conn.h): the table of states, their timeouts, and how connections are opened
 * and closed.
 */
#include "http/conn.h"

#include "http/count.h"
#include "http/handshake.h"
#include "loop/loop.h"

#include <monkey/log.h>

#include <assert.h>
#include <errno.h>

enum { EDGES = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET };

#define TO(state) (1u << (MK__CONN_##state))
/* One turn may serve several requests, so that it can end in any state of its kind of protocol. */
#define ONE_EXCHANGE \
    (TO(READ_HEAD) | TO(READ_BODY) | TO(HANDLER) | TO(DISK) | TO(WRITE) | TO(IDLE) | TO(TUNNEL) | TO(LINGER) | \
     TO(CLOSED))
#define STREAMS (TO(READ_HEAD) | TO(STREAMS) | TO(STREAMS_WRITE) | TO(IDLE) | TO(LINGER) | TO(CLOSED))

enum { READ = MK__CONN_WANT_READ, WRITE = MK__CONN_WANT_WRITE };
enum { ABORT = MK__ON_TIMEOUT_ABORT, CLOSE = MK__ON_TIMEOUT_CLOSE };
#define RESPOND(status) MK__ON_TIMEOUT_RESPOND, status

/* clang-format off */
const struct mk__state_info mk__conn_states[MK__CONN_STATES] = {
    [MK__CONN_CLOSED] = {"closed", MK__TIMEOUTS, .next = 0},
    [MK__CONN_HANDSHAKE] = {"handshake", MK__TIMEOUT_HANDSHAKE, ABORT, .want = READ | WRITE,
                            .turn = MK__CONN_TURN_HANDSHAKE, .evict = MK__CONN_EVICT_LAST,
                            .next = TO(HANDSHAKE) | TO(NEW) | TO(CLOSED)},
    [MK__CONN_NEW] = {"new", MK__TIMEOUT_HEAD, CLOSE, .want = READ, .idle = true, .evict = MK__CONN_EVICT_LAST,
                      .next = ONE_EXCHANGE | STREAMS | TO(NEW)},
    [MK__CONN_IDLE] = {"idle", MK__TIMEOUT_IDLE, CLOSE, .want = READ, .idle = true, .evict = MK__CONN_EVICT_FIRST,
                       .next = ONE_EXCHANGE | STREAMS},
    [MK__CONN_READ_HEAD] = {"read_head", MK__TIMEOUT_HEAD, RESPOND(408), .want = READ, .evict = MK__CONN_EVICT_LAST,
                            .next = ONE_EXCHANGE | STREAMS | TO(NEW)},
    [MK__CONN_READ_BODY] = {"read_body", MK__TIMEOUT_BODY, RESPOND(408), .want = READ, .restarts = true,
                            .limits_rate = true, .next = ONE_EXCHANGE},
    [MK__CONN_HANDLER] = {"handler", MK__TIMEOUT_HANDLER, RESPOND(503), .notifies_handler = true, .restarts = true,
                          .next = ONE_EXCHANGE},
    [MK__CONN_DISK] = {"disk", MK__TIMEOUT_HANDLER, RESPOND(503), .next = ONE_EXCHANGE},
    [MK__CONN_WRITE] = {"write", MK__TIMEOUT_SEND, ABORT, .want = WRITE, .restarts = true, .next = ONE_EXCHANGE},
    [MK__CONN_TUNNEL] = {"tunnel", MK__TIMEOUT_TUNNEL, ABORT, .want = READ | WRITE, .restarts = true,
                         .next = TO(TUNNEL) | TO(WRITE) | TO(LINGER) | TO(CLOSED)},
    [MK__CONN_STREAMS] = {"streams", MK__TIMEOUTS, .want = READ | WRITE, .next = STREAMS},
    [MK__CONN_STREAMS_WRITE] = {"streams_write", MK__TIMEOUT_SEND, ABORT, .want = READ | WRITE, .restarts = true,
                                .next = STREAMS | TO(NEW)},
    [MK__CONN_LINGER] = {"linger", MK__TIMEOUT_LINGER, ABORT, .want = READ, .turn = MK__CONN_TURN_LINGER,
                         .evict = MK__CONN_EVICT_FIRST, .next = TO(LINGER) | TO(CLOSED)},
};
/* clang-format on */

/* ── states and events ── */

static void free_conn(struct mk_task *task)
{
    struct mk__conn *c = MK_CONTAINER_OF(task, struct mk__conn, task);
    mk__pool_put(&c->http->connections, c);
}

/*
 * Shows a new connection to the accept hooks, and to those for its client unless a PROXY header will name it. Returns
 * false if one of them refused it.
 */
static bool run_accept_hooks(struct mk__conn *c)
{
    struct mk__peer *peer = &c->handle.peer;
    peer->refused = c->http->settings->notify_accept && c->http->app->on_accept(&c->handle, c->http->app_ctx) < 0;
    return !peer->refused && (peer->expects_proxy_header || mk__client_addr_notify(&c->handle, c->http) == 0);
}

static uint32_t get_tenths(const struct mk__context *http)
{
    return (uint32_t)(mk_loop_now_ms(http->loop) / 100);
}

/* Tells whether a connection is the last one, accepted a moment ago: it may be the one for which room is made. */
static bool is_just_accepted(const struct mk__conn *c)
{
    return c->link.next == &c->http->conns && !c->requests && get_tenths(c->http) - c->opened_tenths < 2;
}

static MK_NOINLINE void close_conn(struct mk__conn *c)
{
    struct mk__context *http = c->http;
    c->proto->close(c);
    assert(!c->req && !c->proto_data);
    if (c->handle.states || (c->http->settings->notify_close && !c->handle.peer.refused))
        c->http->app->on_close(&c->handle, c->http->app_ctx);
    mk_timer_cancel(&c->timer);
    if (http->inspector)
        http->inspector->on_free(http->inspector, c);
    mk_list_del(&c->link);
    assert(http->conns_in_drain >= c->accepted_in_drain);
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
    uint64_t bytes = c->req ? mk__request_count_bytes(c->req) : 0;
    return bytes + c->stream_bytes - (c->sock.held_len - c->sock.held_at);
}

/*
 * Arms the timer of the current state. It runs from when the state was entered, and starts again with each request;
 * with `restarts` also with body bytes in either direction. Bytes of a head never restart it.
 */
static void arm_timer(struct mk__conn *c, enum mk__conn_state before)
{
    const struct mk__state_info *info = &mk__conn_states[c->state];
    assert(!info->limits_rate || c->req);
    bool restarts = (info->restarts && count_moved_bytes(c) != c->armed_bytes) || c->requests != c->armed_requests;
    c->armed_requests = c->requests;
    c->armed_bytes = count_moved_bytes(c);
    if (info->limits_rate && !(mk__conn_states[before].want & MK__CONN_WANT_READ))
        mk__request_restart_rate(c->req);
    if (info->timeout == MK__TIMEOUTS) {
        mk_timer_cancel(&c->timer);
        return;
    }
    if (before != c->state || restarts) {
        mk_timer_arm(c->http->loop, &c->timer, mk__request_get_limits(c->req, c->http)->timeout_ms[info->timeout]);
    }
}

static MK_NOINLINE void end_handshake(struct mk__conn *c)
{
    assert(c->http->handshakes > 0);
    mk_list_del(&c->handshaking);
    c->http->handshakes--;
}

/* The log names the peer and the listener of a connection that is closed. */
static void trace_state(const struct mk__conn *c, enum mk__conn_state state)
{
    const char *before = mk__conn_states[c->state].name, *after = mk__conn_states[state].name;
    if (state == MK__CONN_CLOSED)
        mk_io_log(&c->sock.io, &c->handle.peer.address, MK_LOG_DEBUG, "connection %d: %s to %s", c->event.fd, before,
                  after);
    else
        mk_log_debug("connection %d: %s to %s", c->event.fd, before, after);
    if (MK_UNLIKELY(c->traced) && c->http->inspector)
        c->http->inspector->on_state(c->http->inspector, c, state);
}

static MK_HOT void enter_state(struct mk__conn *c, enum mk__conn_state state)
{
    enum mk__conn_state before = c->state;
    assert(state < MK__CONN_STATES && mk__conn_states[before].next & 1u << state);
    assert(!c->running);
    trace_state(c, state);
    c->state = (uint8_t)state;
    if (before != state) {
        mk__count_add(c->http, MK__COUNT_STATES + before, -1);
        if (state != MK__CONN_CLOSED)
            mk__count_add(c->http, MK__COUNT_STATES + state, 1);
    }
    if (mk__conn_states[before].turn == MK__CONN_TURN_HANDSHAKE &&
        mk__conn_states[state].turn != MK__CONN_TURN_HANDSHAKE)
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

/* Returns a protocol that connections may switch to; NULL: it is disabled, or not in this build. */
static const struct mk__proto *find_proto(struct mk__context *http, unsigned at)
{
    const struct mk__proto_entry *entry = &http->app->protos[at];
    assert(at > 0 && at < MK__PROTOS);
    if (!entry->is_enabled(http->settings))
        return NULL;
    if (!http->protos[at].proto)
        http->protos[at].proto = entry->find();
    return http->protos[at].proto;
}

/* Returns the place of the protocol that `in` begins, in the list, and how much of its preface; 0: there is none. */
static unsigned recognize_proto(const struct mk__context *http, struct mk_str in, enum mk__preface *ret_preface)
{
    *ret_preface = MK__PREFACE_NONE;
    for (unsigned at = 1; at < MK__PROTOS; at++) {
        *ret_preface = http->app->protos[at].recognize(in);
        if (*ret_preface != MK__PREFACE_NONE)
            return at;
    }
    return 0;
}

enum mk__preface mk__conn_check_preface(struct mk__conn *c, struct mk_str in)
{
    enum mk__preface preface;
    unsigned at = recognize_proto(c->http, in, &preface);
    return at && find_proto(c->http, at) ? preface : MK__PREFACE_NONE;
}

static enum mk__conn_state begin_proto(struct mk__conn *c, const struct mk__proto *proto, struct mk_str in)
{
    assert(!c->req && !c->proto_data && c->requests == 0 && proto->begin);
    c->proto = proto;
    return proto->begin(c, in);
}

enum mk__conn_state mk__conn_switch_proto(struct mk__conn *c, struct mk_str in)
{
    enum mk__preface preface;
    unsigned at = recognize_proto(c->http, in, &preface);
    assert(at && preface == MK__PREFACE_WHOLE);
    return begin_proto(c, c->http->protos[at].proto, in);
}

/* Calls the protocol of the connection, or the one that the handshake has selected (ALPN). */
static enum mk__conn_state dispatch_turn(struct mk__conn *c)
{
    const struct mk_transport *transport = c->sock.io.transport;
    unsigned at = 0;
    if (mk__conn_states[c->state].turn == MK__CONN_TURN_LINGER)
        return MK__CONN_LINGER;
    if (c->state == MK__CONN_NEW && c->proto == c->http->protos[MK__PROTO_H1].proto && transport->protocol) {
        struct mk_str name = transport->protocol(&c->sock.io);
        at = MK__PROTOS - 1;
        while (at > 0 && !mk_str_eq(name, c->http->app->protos[at].alpn))
            at--;
    }
    if (!at)
        return c->proto->on_ready(c);
    const struct mk__proto *proto = find_proto(c->http, at);
    return proto ? begin_proto(c, proto, MK_STR_NONE) : MK__CONN_CLOSED; /* disabled since: the client reconnects */
}

/* Takes a step of the handshake, if this turn has one left. Returns true when the handshake is complete. */
static bool continue_handshake(struct mk__conn *c)
{
    if (!mk__handshake_can_step(c->http, &c->task))
        return false;
    int r =
        c->handle.peer.expects_proxy_header ? mk__client_addr_recv_proxy_header(&c->handle, c->http, &c->sock.io) : 0;
    if (r == 0)
        r = c->sock.io.transport->handshake(&c->sock.io);
    bool waits = r == -EAGAIN || r == -EINPROGRESS;
    c->sock.readable = !waits;
    c->handshake_wants_write = r == -EINPROGRESS;
    if (waits && c->sock.input == MK__SOCK_INPUT_HUNG_UP)
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
    while (http->handshakes > http->settings->handshakes_max) { /* several, if a reload has lowered the limit */
        mk__count_one(http, MK__COUNT_REFUSED_HANDSHAKES);
        enter_state(MK_LIST_FIRST(&http->handshaking, struct mk__conn, handshaking), MK__CONN_CLOSED);
    }
}

static void end_turn(struct mk__conn *c, enum mk__conn_state next)
{
    if (next == MK__CONN_LINGER)
        next = mk__conn_linger(c);
    c->running = false;
    enter_state(c, next);
}

static MK_HOT void run_turn(struct mk__conn *c)
{
    if (mk__conn_states[c->state].turn == MK__CONN_TURN_HANDSHAKE && !continue_handshake(c))
        return;
    assert(c->state != MK__CONN_CLOSED && !c->running);
    mk_task_cancel(&c->task);
    c->running = true;
    end_turn(c, dispatch_turn(c));
}

static void on_task(struct mk_task *task)
{
    run_turn(MK_CONTAINER_OF(task, struct mk__conn, task));
}

/* One side has ended, or both. Returns true if the connection is of no use any more. */
static bool take_hang_up(struct mk__conn *c, uint32_t events)
{
    /* without bytes before that, and the handler does not continue without the client */
    bool ends = !c->sock.readable && c->sock.input == MK__SOCK_INPUT_OPEN && c->req && c->req->ends_with_client &&
                c->state == MK__CONN_HANDLER;
    if (c->sock.input == MK__SOCK_INPUT_OPEN)
        c->sock.input = MK__SOCK_INPUT_HUNG_UP;
    /* both directions are closed: no response can be sent */
    return ends || (events & (EPOLLHUP | EPOLLERR) && !(mk__conn_states[c->state].want & MK__CONN_WANT_READ));
}

static MK_HOT void on_event(struct mk_event *event, uint32_t events)
{
    struct mk__conn *c = MK_CONTAINER_OF(event, struct mk__conn, event);
    const struct mk__state_info *info = &mk__conn_states[c->state];
    bool ends = MK_UNLIKELY(events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) && take_hang_up(c, events);

    if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
        c->sock.readable = true;
    if (events & EPOLLOUT)
        c->sock.writable = true;
    c->reported = info->idle && events & EPOLLIN;
    if (info->turn == MK__CONN_TURN_HANDSHAKE && !c->sock.readable && !c->handshake_wants_write)
        return; /* only writable, and the handshake waits for input */
    if (ends)
        enter_state(c, MK__CONN_CLOSED);
    else if ((info->want & MK__CONN_WANT_READ && c->sock.readable) ||
             (info->want & MK__CONN_WANT_WRITE && c->sock.writable) ||
             (c->sock.readable && c->req && mk__request_awaits_continue(c->req))) /* HANDLER reads nothing else */
        run_turn(c);
}

static void on_timer(struct mk_timer *timer)
{
    struct mk__conn *c = MK_CONTAINER_OF(timer, struct mk__conn, timer);
    mk__count_one(c->http, MK__COUNT_TIMEOUTS + c->state);
    if (mk__conn_states[c->state].on_timeout == MK__ON_TIMEOUT_ABORT) {
        if (c->proto->on_abort)
            c->proto->on_abort(c);
        enter_state(c, MK__CONN_CLOSED);
        return;
    }
    c->running = true;
    end_turn(c, c->proto->on_timeout(c));
}

int mk__conn_open(struct mk__context *http, const struct mk_io *io, const struct mk_address *peer,
                  struct mk_worker *worker)
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
                           .proto = http->protos[MK__PROTO_H1].proto,
                           .state = MK__CONN_NEW};
    c->accepted_in_drain = http->shutdown == MK__SHUTDOWN_DRAINING && http->accept_in_drain;
    http->conns_in_drain += c->accepted_in_drain;
    c->sock = (struct mk__sock){.io = own, .readable = true, .writable = true};
    mk_timer_init(&c->timer, on_timer);
    mk_task_init(&c->task, on_task);
    c->handle.peer.address = *peer;
    c->opened_tenths = get_tenths(http);
    mk_list_add(&http->conns, &c->link);
    bool accepted = run_accept_hooks(c);
    if (http->inspector)
        http->inspector->on_open(http->inspector, c);
    if (accepted && own.transport->handshake)
        begin_handshake(c);
    mk__count_one(http, MK__COUNT_STATES + c->state);
    mk_timer_arm(http->loop, &c->timer, http->settings->limits.timeout_ms[mk__conn_states[c->state].timeout]);
    mk__count_one(http, accepted ? MK__COUNT_ACCEPTED : MK__COUNT_REFUSED_BY_PLUGIN);
    if (!accepted) {
        enter_state(c, MK__CONN_CLOSED);
        return 0;
    }
    run_turn(c);
    return 0;
}

void mk__conn_apply_settings(struct mk__context *http)
{
    for (unsigned at = 0; at < MK__PROTOS; at++)
        if (http->protos[at].proto && http->protos[at].proto->log_totals)
            http->protos[at].proto->log_totals(http);
    MK_LIST_EACH_ITEM(&http->conns, struct mk__conn, link, c) {
        if (c->proto->announces(c, MK__CONN_CHANGE_SETTINGS))
            mk_task_schedule(http->loop, &c->task);
    }
}

void mk__conn_retire_all(struct mk__context *http)
{
    mk__context_advance_shutdown(http, MK__SHUTDOWN_RETIRING);
    MK_LIST_EACH_ITEM(&http->conns, struct mk__conn, link, c) {
        if (c->proto->announces(c, MK__CONN_CHANGE_SHUTDOWN))
            run_turn(c);
    }
}

void mk__conn_drain_all(struct mk__context *http)
{
    mk__context_advance_shutdown(http, MK__SHUTDOWN_DRAINING);
    MK_LIST_EACH_ITEM(&http->conns, struct mk__conn, link, c) {
        bool is_idle = mk__conn_states[c->state].idle;
        if (!is_idle && !c->proto->announces(c, MK__CONN_CHANGE_SHUTDOWN))
            continue;
        c->sock.readable |= is_idle; /* a request may have arrived already: try to read it */
        run_turn(c);
    }
}

bool mk__conn_all_drained(const struct mk__context *http)
{
    if (mk_list_empty(&http->conns))
        return true;
    return MK_LIST_FIRST(&http->conns, struct mk__conn, link)->accepted_in_drain; /* the first is the oldest */
}

/* Closes up to `n` connections whose states have this rank, the oldest first. Returns how many. */
static unsigned evict_conns(struct mk__context *http, enum mk__conn_evict rank, unsigned n)
{
    unsigned closed = 0;
    MK_LIST_EACH_ITEM(&http->conns, struct mk__conn, link, c) {
        if (closed == n)
            break;
        if (mk__conn_states[c->state].evict != rank || c->running)
            continue;
        if (rank == MK__CONN_EVICT_LAST && is_just_accepted(c))
            continue;
        enter_state(c, MK__CONN_CLOSED);
        closed++;
    }
    return closed;
}

/* Returns the connection that a protocol chooses, or NULL. */
static struct mk__conn *find_evicted(struct mk__context *http)
{
    struct mk__conn *found = NULL;
    for (unsigned at = 0; at < MK__PROTOS && !found; at++)
        if (http->protos[at].proto && http->protos[at].proto->evict)
            found = http->protos[at].proto->evict(http);
    return found;
}

unsigned mk__conn_close_idle(struct mk__context *http, unsigned n)
{
    unsigned closed = evict_conns(http, MK__CONN_EVICT_FIRST, n);
    if (closed)
        return closed;
    struct mk__conn *c = find_evicted(http);
    if (!c)
        return evict_conns(http, MK__CONN_EVICT_LAST, n);
    enter_state(c, MK__CONN_CLOSED);
    return 1;
}

void mk__conn_save_memory(struct mk__context *http, unsigned n)
{
    for (unsigned at = 0; at < MK__PROTOS; at++)
        if (http->protos[at].proto && http->protos[at].proto->close_idle)
            http->protos[at].proto->close_idle(http, n);
}

void mk__conn_release_protos(struct mk__context *http)
{
    for (unsigned at = 0; at < MK__PROTOS; at++)
        if (http->protos[at].proto && http->protos[at].proto->release)
            http->protos[at].proto->release(http);
}

int mk__conn_abort(struct mk__conn *c)
{
    if (c->running)
        return -EBUSY;
    enter_state(c, MK__CONN_CLOSED);
    return 0;
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
    assert(!c->req);
    if (!transport->close_notify)
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
    bool idle = mk__conn_states[c->state].idle && c->requests == c->armed_requests;
    bool client_done = mk__sock_has_ended(&c->sock) || c->close == MK__CLOSE_BY_CLIENT;
    bool needs_notify = !(mk__sock_has_ended(&c->sock) && idle);
    if (needs_notify && !send_close_notify(c)) {
        mk__conn_close_after(c, MK__CLOSE_AFTER_RESPONSE);
        return MK__CONN_WRITE; /* called again when the socket is writable */
    }
    if (client_done || (idle && c->close < MK__CLOSE_UNREAD_INPUT && mk__sock_unsent(&c->sock) == 0))
        return MK__CONN_CLOSED;
    c->sock.io.transport->shutdown(&c->sock.io);
    c->sock.readable = true;
    return MK__CONN_LINGER;
}

enum mk__conn_state mk__conn_linger(struct mk__conn *c)
{
    struct mk__scratch *scratch = &c->http->in;
    assert(!c->req);
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

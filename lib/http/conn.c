// SPDX-License-Identifier: Apache-2.0
/*
 * A connection between two turns (http/conn.h): its states, the limits of its waits, its beginning and its end.
 */
#include "http/conn.h"

#include "http/h1.h"
#ifndef MK_LEAN
#include "http/h2_core.h"
#include "http/shake.h"
#endif

#include "loop/loop.h"

#include <monkey/log.h>

#include <assert.h>
#include <errno.h>

enum { EDGES = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET };

#define TO(state) (1u << (MK__CONN_##state))
/* One turn may serve several requests, so that it can end at any of these. */
#define ANY_WORK \
    (TO(STREAMS) | TO(BLOCKED) | TO(HEAD) | TO(BODY) | TO(HANDLER) | TO(DISK) | TO(SEND) | TO(IDLE) | TO(TUNNEL) | \
     TO(LINGER) | TO(CLOSED))

const struct mk__conn_wait mk__conn_waits[MK__CONN_STATES] = {
    [MK__CONN_CLOSED] = {"closed", 0, MK__WAITS, 0, 0},
#ifndef MK_LEAN
    [MK__CONN_SHAKE] = {"handshake", MK__CONN_WANT_READ | MK__CONN_WANT_WRITE, MK__WAIT_HANDSHAKE, 0,
                        TO(SHAKE) | TO(FRESH) | TO(CLOSED)},
#endif
    [MK__CONN_FRESH] = {"fresh", MK__CONN_WANT_READ, MK__WAIT_HEAD, 0, ANY_WORK | TO(FRESH)},
    [MK__CONN_IDLE] = {"idle", MK__CONN_WANT_READ, MK__WAIT_IDLE, 0, ANY_WORK},
    [MK__CONN_HEAD] = {"head", MK__CONN_WANT_READ, MK__WAIT_HEAD, 408, ANY_WORK | TO(FRESH)},
    [MK__CONN_BODY] = {"body", MK__CONN_WANT_READ, MK__WAIT_BODY, 408, ANY_WORK},
    [MK__CONN_HANDLER] = {"handler", 0, MK__WAIT_HANDLER, 503, ANY_WORK},
    [MK__CONN_DISK] = {"disk", 0, MK__WAIT_HANDLER, 503, ANY_WORK},
    [MK__CONN_SEND] = {"send", MK__CONN_WANT_WRITE, MK__WAIT_SEND, 0, ANY_WORK},
    [MK__CONN_TUNNEL] = {"tunnel", MK__CONN_WANT_READ | MK__CONN_WANT_WRITE, MK__WAIT_TUNNEL, 0,
                         TO(TUNNEL) | TO(SEND) | TO(LINGER) | TO(CLOSED)},
#ifndef MK_LEAN
    [MK__CONN_STREAMS] = {"streams", MK__CONN_WANT_READ | MK__CONN_WANT_WRITE, MK__WAITS, 0, ANY_WORK},
    [MK__CONN_BLOCKED] = {"blocked", MK__CONN_WANT_READ | MK__CONN_WANT_WRITE, MK__WAIT_SEND, 0, ANY_WORK | TO(FRESH)},
#endif
    [MK__CONN_LINGER] = {"linger", MK__CONN_WANT_READ, MK__WAIT_LINGER, 0, TO(LINGER) | TO(CLOSED)},
};

/* ── states and events ── */

static void bury(struct mk_task *task)
{
    struct mk__conn *c = MK_OWNER(task, struct mk__conn, task);
    mk__pool_put(&c->http->connections, c);
}

#ifndef MK_LEAN
static struct mk_connection facade_of(struct mk__conn *c)
{
    return (struct mk_connection){.io = &c->stream.io, .peer = &c->peer, .http = c->http, .id = &c->id};
}

/* A fresh connection is shown to the consumer, who may not want it; but who has gone is not served any more. */
static bool is_welcome(struct mk__conn *c)
{
    struct mk_connection conn = facade_of(c);
    c->peer.refused = !mk__client_meet(&c->peer, &c->stream.io) ||
                      (c->http->settings->greets && c->http->app->accepted(&conn, c->http->app_ctx) < 0);
    return !c->peer.refused;
}

static void part(struct mk__conn *c)
{
    struct mk_connection conn = facade_of(c);
    if (c->http->settings->parts && !c->peer.refused)
        c->http->app->parted(&conn, c->http->app_ctx);
}
#endif

static void close_connection(struct mk__conn *c)
{
    struct mk__http *http = c->http;
    if (c->req)
        mk__h1_finish_exchange(c, true);
#ifndef MK_LEAN
    if (c->h2)
        c->http->h2->close(c);
    part(c);
#endif
    mk__h1_drop_rest(c);
    mk_timer_cancel(&c->timer);
    mk_list_del(&c->link);
#ifndef MK_LEAN
    http->late -= c->late;
#endif
    if (c->watched)
        mk_event_del(http->loop, &c->event);
    mk__stream_close(&c->stream, http->account);
    http->app->closed(http->app_ctx);
    mk_task_cancel(&c->task);
    mk_task_init(&c->task, bury);
    mk__loop_bury(http->loop, &c->task);
}

/* What has gone either way in the current exchange, less what the client has not taken yet. */
static uint64_t moved_bytes(const struct mk__conn *c)
{
    uint64_t bytes = c->req ? c->req->sent_bytes + c->req->body_bytes : 0;
#ifndef MK_LEAN
    bytes += c->streamed;
#endif
    return bytes - (c->stream.held_len - c->stream.held_at);
}

/*
 * The limit of a wait runs from its beginning, which a new request is as well. Sending and receiving a body
 * restart it as they go on, and so does a handler that sends its answer in pieces; a head never does.
 */
static void arm(struct mk__conn *c, enum mk__conn_state before)
{
    bool moves = c->state == MK__CONN_HANDLER || c->state == MK__CONN_SEND || c->state == MK__CONN_BODY ||
                 c->state == MK__CONN_TUNNEL || c->state == MK__CONN_BLOCKED;
    bool restarts = (moves && moved_bytes(c) != c->armed_bytes) || c->requests != c->armed_requests;
    c->armed_requests = c->requests;
    c->armed_bytes = moved_bytes(c);
    if (c->state == MK__CONN_BODY &&
        (before == MK__CONN_HANDLER || before == MK__CONN_SEND || before == MK__CONN_DISK)) {
        /* what we made the client wait does not count against it */
        c->req->rate_since_ms = mk_loop_now_ms(c->http->loop);
        c->req->rate_bytes = 0;
    }
#ifndef MK_LEAN
    if (c->state == MK__CONN_STREAMS) {
        mk_timer_cancel(&c->timer);
        return;
    }
#endif
    if (before != c->state || restarts) {
        const struct mk__http_limits *limits = c->req ? c->req->limits : &c->http->settings->limits;
        mk_timer_arm(c->http->loop, &c->timer, limits->wait_ms[mk__conn_waits[c->state].limit]);
    }
}

#ifndef MK_LEAN
static void leave_handshake(struct mk__conn *c)
{
    mk_list_del(&c->shaking);
    c->http->handshakes--;
}
#endif

static void enter(struct mk__conn *c, enum mk__conn_state state)
{
    enum mk__conn_state before = c->state;
    assert(mk__conn_waits[before].next & 1u << state);
    mk_log_debug("connection %d: %s to %s", c->event.fd, mk__conn_waits[before].name, mk__conn_waits[state].name);
    c->state = (uint8_t)state;
#ifndef MK_LEAN
    if (before == MK__CONN_SHAKE && state != MK__CONN_SHAKE)
        leave_handshake(c);
#endif
    if (state == MK__CONN_CLOSED) {
        close_connection(c);
        return;
    }
    arm(c, before);
    if (c->watched)
        return;
    c->watched = true;
    if (mk_event_add(c->http->loop, &c->event, EDGES) < 0) {
        c->watched = false;
        enter(c, MK__CONN_CLOSED);
    }
}

/* ── turns ── */

#ifndef MK_LEAN
enum mk__conn_state mk__conn_switch(struct mk__conn *c, struct mk_str in)
{
    return c->http->h2->begin(c, in);
}

bool mk__conn_may_switch(struct mk__conn *c)
{
    struct mk__http *http = c->http;
    if (!http->h2 && http->settings->h2)
        http->h2 = http->app->h2();
    return http->h2 && http->settings->h2;
}

/* The handshake may have settled on a protocol already. */
static bool has_settled_on_h2(const struct mk__conn *c)
{
    const struct mk_transport *transport = c->stream.io.transport;
    if (c->state != MK__CONN_FRESH || !transport->protocol)
        return false;
    return mk_str_eq(transport->protocol(&c->stream.io), MK_STR("h2"));
}
#endif

static enum mk__conn_state take_turn(struct mk__conn *c)
{
    if (c->state == MK__CONN_LINGER)
        return MK__CONN_LINGER;
#ifndef MK_LEAN
    if (c->h2)
        return c->http->h2->turn(c, MK_STR_NONE);
    if (has_settled_on_h2(c)) /* if it was switched off since, the client comes again */
        return mk__conn_may_switch(c) ? mk__conn_switch(c, MK_STR_NONE) : MK__CONN_CLOSED;
#endif
    return MK__TUNNELS && c->state == MK__CONN_TUNNEL ? mk__h1_tunnel(c) : mk__h1_take_turn(c);
}

#ifndef MK_LEAN
/* Goes on with the handshake; true once it is done. */
static bool settle_handshake(struct mk__conn *c)
{
    if (!mk__shake_may(c))
        return false;
    int r = mk__shake_step(c);
    bool waits = r == -EAGAIN || r == -EINPROGRESS;
    c->stream.readable = !waits;
    c->shakes_out = r == -EINPROGRESS;
    if (waits && c->stream.hung_up)
        mk_task_schedule(c->http->loop, &c->task); /* no edge will tell of the end, which has not been read yet */
    enter(c, waits ? MK__CONN_SHAKE : r < 0 ? MK__CONN_CLOSED : MK__CONN_FRESH);
    return r == 0;
}

static void begin_handshake(struct mk__conn *c)
{
    struct mk__http *http = c->http;
    c->state = MK__CONN_SHAKE;
    mk_list_add(&http->shaking, &c->shaking);
    http->handshakes++;
    while (http->handshakes > http->settings->handshakes_max) /* more than one, when a reload has lowered it */
        enter(MK_LIST_FIRST(&http->shaking, struct mk__conn, shaking), MK__CONN_CLOSED);
}
#endif

static void run(struct mk__conn *c)
{
#ifndef MK_LEAN
    if (c->state == MK__CONN_SHAKE && !settle_handshake(c))
        return;
#endif
    mk_task_cancel(&c->task);
    c->driving = true;
    enum mk__conn_state next = take_turn(c);
    if (next == MK__CONN_LINGER)
        next = mk__conn_linger(c);
    c->driving = false;
    enter(c, next);
}

static void on_task(struct mk_task *task)
{
    run(MK_OWNER(task, struct mk__conn, task));
}

static void on_event(struct mk_event *event, uint32_t events)
{
    struct mk__conn *c = MK_OWNER(event, struct mk__conn, event);
    const struct mk__conn_wait *wait = &mk__conn_waits[c->state];

    if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
        c->stream.readable = true;
    if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
        c->stream.hung_up = true;
    if (events & EPOLLOUT)
        c->stream.writable = true;
#ifndef MK_LEAN
    if (c->state == MK__CONN_SHAKE && !c->stream.readable && !c->shakes_out)
        return; /* room is not what it waits for */
#endif
    if (events & (EPOLLHUP | EPOLLERR) && !(wait->want & MK__CONN_WANT_READ))
        enter(c, MK__CONN_CLOSED); /* both ways are gone: nobody is there to answer */
    else if ((wait->want & MK__CONN_WANT_READ && c->stream.readable) ||
             (wait->want & MK__CONN_WANT_WRITE && c->stream.writable))
        run(c);
}

static void on_timer(struct mk_timer *timer)
{
    struct mk__conn *c = MK_OWNER(timer, struct mk__conn, timer);
    int status = mk__conn_waits[c->state].overdue;
#ifndef MK_LEAN
    if (c->h2 && c->state != MK__CONN_LINGER) {
        c->driving = true;
        enum mk__conn_state next = c->http->h2->overdue(c);
        c->driving = false;
        enter(c, next);
        return;
    }
#endif
    if (c->state == MK__CONN_HANDLER && c->http->app->overdue)
        c->http->app->overdue(c->req, c->http->app_ctx);
    if (c->state == MK__CONN_IDLE || c->state == MK__CONN_FRESH) {
        enter(c, mk__conn_goodbye(c));
        return;
    }
    if (!status || (c->req && c->req->head_sent)) {
        enter(c, MK__CONN_CLOSED);
        return;
    }
    if (!c->req) {
        c->req = mk__request_new(c->http, &mk__h1_carrier, c);
        if (!c->req) {
            enter(c, MK__CONN_CLOSED);
            return;
        }
        c->req->base = "";
        mk__h1_drop_rest(c);
    }
    c->closing = c->impolite = true;
    c->req->body_done = c->req->body_failed = c->req->body_discard = true;
    mk_response_error(c->req, status);
    run(c);
}

#ifndef MK_LEAN
/* It has come as a guest, and all that will ever be said of its first state has been said. */
static void welcome(struct mk__conn *c, uint32_t events)
{
    if (!events)
        return;
    c->watched = true;
    c->stream.hung_up = events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR);
    c->stream.readable = c->stream.hung_up || events & EPOLLIN;
}
#endif

int mk__conn_open(struct mk__http *http, const struct mk_io *io, struct mk_worker *worker)
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
        http->app->closed(http->app_ctx);
        return err;
    }
    *c = (struct mk__conn){.event = {on_event, own.fd}, .http = http, .state = MK__CONN_FRESH};
#ifndef MK_LEAN
    c->late = http->draining && http->lasting;
    http->late += c->late;
#endif
    c->stream = (struct mk__stream){.io = own, .readable = true, .writable = true};
#ifndef MK_LEAN
    if (http->loop->guests)
        welcome(c, mk__guests_take(http->loop->guests, &c->event));
#endif
    mk_timer_init(&c->timer, on_timer);
    mk_task_init(&c->task, on_task);
    mk_list_add(&http->live, &c->link);
#ifndef MK_LEAN
    bool welcome = is_welcome(c);
    if (welcome && own.transport->handshake)
        begin_handshake(c);
#endif
    mk_timer_arm(http->loop, &c->timer, http->settings->limits.wait_ms[mk__conn_waits[c->state].limit]);
#ifndef MK_LEAN
    if (!welcome) {
        enter(c, MK__CONN_CLOSED);
        return 0;
    }
#endif
    run(c);
    return 0;
}

static bool is_h2(const struct mk__conn *c)
{
#ifdef MK_LEAN
    (void)c;
    return false;
#else
    return c->h2 && c->state != MK__CONN_LINGER;
#endif
}

#ifndef MK_LEAN
void mk__conn_renew(struct mk__http *http)
{
    struct mk_list *n, *save;
    if (http->h2)
        http->h2->sum_up(http);
    MK_LIST_EACH(&http->live, n, save) {
        struct mk__conn *c = MK_OWNER(n, struct mk__conn, link);
        if (is_h2(c))
            mk_task_schedule(http->loop, &c->task);
    }
}
#endif

void mk__conn_leave(struct mk__http *http)
{
    struct mk_list *n, *save;
    http->leaving = true;
    MK_LIST_EACH(&http->live, n, save) {
        struct mk__conn *c = MK_OWNER(n, struct mk__conn, link);
        if (c->state == MK__CONN_TUNNEL || is_h2(c))
            run(c);
    }
}

void mk__conn_drain(struct mk__http *http)
{
    struct mk_list *n, *save;
    http->draining = true;
    MK_LIST_EACH(&http->live, n, save) {
        struct mk__conn *c = MK_OWNER(n, struct mk__conn, link);
        bool waits = c->state == MK__CONN_IDLE || c->state == MK__CONN_FRESH;
        if (!waits && c->state != MK__CONN_TUNNEL && !is_h2(c))
            continue;
        c->stream.readable |= waits; /* a request may be on its way into our hands */
        run(c);
    }
}

bool mk__conn_drained(const struct mk__http *http)
{
    if (mk_list_empty(&http->live))
        return true;
#ifndef MK_LEAN
    return MK_LIST_FIRST(&http->live, struct mk__conn, link)->late; /* the oldest is the first */
#else
    return false;
#endif
}

/* Ends up to `n` connections in one of these states, the oldest first. */
static unsigned close_those_in(struct mk__http *http, uint32_t states, unsigned n)
{
    struct mk_list *node, *save;
    unsigned closed = 0;
    MK_LIST_EACH(&http->live, node, save) {
        struct mk__conn *c = MK_OWNER(node, struct mk__conn, link);
        if (closed == n)
            break;
        if (!(states & 1u << c->state) || c->driving)
            continue;
        enter(c, MK__CONN_CLOSED);
        closed++;
    }
    return closed;
}

unsigned mk__conn_close_idle(struct mk__http *http, unsigned n)
{
    unsigned closed = close_those_in(http, TO(IDLE) | TO(LINGER), n);
#ifndef MK_LEAN
    struct mk__conn *hoarder = closed || !http->h2 ? NULL : http->h2->hoarder(http);
    if (hoarder) {
        enter(hoarder, MK__CONN_CLOSED);
        closed = 1;
    }
#endif
    return closed ? closed : close_those_in(http, TO(SHAKE) | TO(FRESH) | TO(HEAD), n);
}

void mk__conn_abort_all(struct mk__http *http)
{
    while (!mk_list_empty(&http->live))
        enter(MK_LIST_FIRST(&http->live, struct mk__conn, link), MK__CONN_CLOSED);
}

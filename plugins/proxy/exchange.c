// SPDX-License-Identifier: Apache-2.0
/*
 * The exchange with a backend. Both directions run at the same time:
 *
 *     DIALING ─► HANDSHAKE (of TLS) ─► WAITING (the request is being sent, the response awaited) ─► BODY ─► OVER
 *        │           │                      │ a kept connection that ends before the first byte: a new one │
 *        └───────────┴──────────────────────┼──► 502, 504                                         cut ◄────┘
 *                                           └──► a tunnel (tunnel.h), if the backend does an upgrade
 *
 * All events of the connection and of timers come here; exchange_server.c chooses the server, exchange_up.c sends the
 * request, exchange_down.c reads the response. The struct lasts as long as the server's exchange, but not as long as a
 * tunnel, which needs less memory.
 */
#include "exchange.h"

#include "bound.h"
#include "exchange_state.h"
#include "failure.h"
#include "orphan.h"
#include "trailers.h"

#include <assert.h>
#include <errno.h>
#include <sys/epoll.h>

enum {
    FRESH_MS = 1000,    /* how long a connection may have been idle for a request that cannot be repeated */
    REASON_BYTES = 512, /* of a transport, or of a failure */
};

static void connect_backend(struct exchange *x);

/* ── the end ── */

static void drop_conn(struct exchange *x)
{
    if (x->conn)
        backend_close(x->conn);
    x->conn = NULL;
}

static void end_waits(struct exchange *x)
{
    x->phase = OVER;
    mk_timer_cancel(&x->timer);
    mk_dial_cancel(&x->dial);
    if (x->route->group)
        x->route->upstreams->cancel(&x->wait);
    received_release(&x->received);
}

static void keep_conn(struct exchange *x)
{
    if (x->conn->is_bound)
        bound_keep(x->req, x->conn);
    else
        backend_keep(x->conn);
}

void exchange_finish(struct exchange *x)
{
    end_waits(x);
    report_end(&x->report);
    if (x->conn && upload_is_done(&x->up) && download_keeps_conn(&x->down))
        keep_conn(x);
    else if (x->conn)
        backend_close(x->conn);
    x->conn = NULL;
    exchange_end_use(x);
}

void exchange_free(struct exchange *x)
{
    end_waits(x);
    drop_conn(x);
    upload_release(&x->up);
    download_release(&x->down);
    buffer_release(&x->buffer);
    if (x->pipe)
        pipe_put(x->pipe);
    if (x->report.tally)
        tally_add(x->report.tally, TALLY_SENT_BYTES, thread_get_worker(x->thread), (int64_t)x->up.sent_bytes);
    exchange_end_use(x);
    if (x->backend)
        backend_put(x->backend);
    mk_account_free(x->thread->account, x, sizeof(*x));
}

/* With `OnClientLeave Finish` a request that the backend has, or will have as a whole, is brought to its end. */
static void abandon(struct exchange *x)
{
    bool is_whole = x->up.is_sent && (upload_is_taken(&x->up) || x->received.spooled);
    if (x->conf->client_leave != PROXY_CLIENT_LEAVE_FINISH || !x->conn || x->phase < WAITING || x->phase == OVER ||
        !is_whole || x->up.is_refused || x->buffer.is_live || x->upgrade.token.len)
        return;
    const struct orphan_parts parts = {.worker = mk_request_worker(x->req),
                                       .conf = x->conf,
                                       .conn = x->conn,
                                       .up = &x->up,
                                       .received = &x->received,
                                       .down = &x->down,
                                       .has_head = x->phase == BODY,
                                       .deadline_ms = x->deadline_ms};
    if (!orphan_adopt(&parts))
        return;
    x->conn = NULL;
    x->backend = NULL;
    x->uses_backend = false;
}

/* The exchange of the server ends, complete or not. */
static void release(void *arg)
{
    struct owner *owner = arg;
    if (owner->exchange) {
        abandon(owner->exchange);
        exchange_free(owner->exchange);
    }
    tunnel_release(&owner->tunnel);
}

void exchange_reject(struct exchange *x, int status)
{
    end_waits(x);
    drop_conn(x);
    exchange_end_use(x);
    mk_response_error(x->req, status);
}

/* ── failures ── */

void exchange_respond_failure(struct exchange *x, int status, const char *type, struct mk_str details)
{
    char storage[2 * REASON_BYTES + 128];
    struct mk_buf value;
    struct mk_request *req = x->req;
    mk_buf_init_fixed(&value, storage, sizeof(storage));
    failure_write(&value, type, details);
    exchange_reject(x, status);
    mk_response_header(req, MK_STR("Proxy-Status"), mk_buf_str(&value));
}

bool exchange_can_resend(const struct exchange *x)
{
    return !x->up.body_begun || x->received.spooled;
}

/* No byte of a response has come, and the request can be sent once more. */
static bool is_unanswered(const struct exchange *x)
{
    return !x->down.has_begun && exchange_can_resend(x);
}

/*
 * A kept connection may have ended just before it was used: the request goes to a new one, if it may be repeated
 * (RFC 9110 section 9.2.2).
 */
static bool can_retry(const struct exchange *x, int err)
{
    return x->phase == WAITING && x->conn && x->conn->is_reused && (err == -EPIPE || err == -ECONNRESET) &&
           is_unanswered(x) && (x->is_idempotent || !x->up.is_sent);
}

/* Has the transport describe an error of its own. Returns its type; NULL: it is not one, or a timeout or the like. */
static const char *describe_failure(const struct exchange *x, const struct failure *f, int err, struct mk_buf *reason)
{
    bool is_own = x->conn && (x->phase == HANDSHAKE || x->down.has_failed);
    if (!is_own || f->status != 502 || !x->conn->io.transport->describe_error)
        return NULL;
    return x->conn->io.transport->describe_error(&x->conn->io, err, reason);
}

/* To another server, if there is one: this one may be about to end. */
static void retry(struct exchange *x)
{
    x->tries.loss = MK_UPSTREAM_KEPT_ENDED;
    if (!x->route->group || exchange_choose_server(x) != 0) /* without another one it stays */
        report_retry(&x->report, MK_UPSTREAM_KEPT_ENDED);
    drop_conn(x);
    x->is_retry = true;
    exchange_up_rewind(x);
    connect_backend(x);
}

/* Tells whether the failure is one of this process, and not of the backend. */
static bool is_own_failure(int err)
{
    return err == -ENOMEM || err == -EMFILE || err == -ENFILE || err == -EDQUOT;
}

/* Another server of the group gets the request, if this one has none of it, or it may be repeated. */
static bool try_other_server(struct exchange *x)
{
    bool can_repeat = x->phase == WAITING && x->is_idempotent && is_unanswered(x);
    x->tries.loss = x->phase == WAITING ? MK_UPSTREAM_SENT : MK_UPSTREAM_NOT_REACHED;
    if (!x->route->group || x->phase == QUEUED || (x->phase >= WAITING && !can_repeat) ||
        mk_loop_now_ms(x->loop) >= x->deadline_ms)
        return false;
    mk_dial_cancel(&x->dial);
    int r = exchange_choose_server(x);
    if (r == 0)
        exchange_connect_server(x);
    else if (r == MK_AGAIN)
        exchange_touch(x);
    return r >= 0;
}

/* Tells whether the exchange waits for the backend, and not for the client: with a Deadline either may take too long.
 */
static bool is_backends_turn(const struct exchange *x)
{
    if (x->phase == WAITING)
        return upload_is_blocked(&x->up) || upload_is_taken(&x->up);
    return x->phase < WAITING || x->awaits_backend;
}

/* What waits for the client comes before the cut, which its reader makes then. */
static void cut_response(struct exchange *x)
{
    end_waits(x);
    drop_conn(x);
    exchange_end_use(x);
    if (buffer_has_bytes(&x->buffer) || x->pipe)
        mk_response_wake(x->req);
    else
        mk_response_abort(x->req);
}

void exchange_fail(struct exchange *x, int err)
{
    char storage[REASON_BYTES];
    struct mk_buf reason;
    assert(err < 0);
    if (x->phase == OVER)
        return;
    if (can_retry(x, err)) {
        retry(x);
        return;
    }
    if (!is_own_failure(err) && (err != -ETIMEDOUT || is_backends_turn(x)))
        exchange_report_error(x, err);
    if (try_other_server(x))
        return;
    const struct failure *f = failure_find(x->phase < WAITING, err);
    mk_buf_init_fixed(&reason, storage, sizeof(storage));
    const char *type = describe_failure(x, f, err, &reason);
    if (!type)
        mk_buf_addf(&reason, "%s", f->text ? f->text : x->phase < WAITING ? mk_dial_error(err) : strerror(-err));
    report_failure(&x->report, err);
    mk_request_log(x->req, MK_LOG_ERROR, "proxy: %.*s: %s", MK_STR_ARG(x->conf->to.text), mk_buf_cstr(&reason));
    if (x->phase != BODY) {
        exchange_respond_failure(x, f->status, type ? type : f->type, type ? mk_buf_str(&reason) : MK_STR_NONE);
        return;
    }
    cut_response(x);
}

/* ── timeouts ── */

/* How long the present wait may last; 0: what it waits for is the client, which the server watches. */
static uint32_t get_wait_ms(const struct exchange *x)
{
    if (x->phase == QUEUED)
        return 0; /* the group ends that */
    if (x->phase < WAITING)
        return x->conf->connect_timeout_ms;
    if (x->phase == WAITING && upload_is_blocked(&x->up))
        return x->conf->send_timeout_ms;
    if (x->phase == WAITING && (upload_is_taken(&x->up) || !x->is_invited))
        return x->conf->response_timeout_ms;
    return x->phase == BODY && x->awaits_backend ? x->conf->read_timeout_ms : 0;
}

static uint64_t get_end_ms(const struct exchange *x)
{
    return x->wait_end_ms < x->deadline_ms ? x->wait_end_ms : x->deadline_ms;
}

static void arm_timer(struct exchange *x, uint64_t now)
{
    uint64_t end = get_end_ms(x);
    if (end == UINT64_MAX || (x->timer_ms && x->timer_ms <= end))
        return; /* it looks at the end when it fires */
    x->timer_ms = end;
    mk_timer_arm(x->loop, &x->timer, end > now ? (uint32_t)(end - now) : 0);
}

void exchange_touch(struct exchange *x)
{
    uint64_t now = mk_loop_now_ms(x->loop);
    uint32_t wait = get_wait_ms(x);
    x->wait_end_ms = wait ? now + wait : UINT64_MAX;
    if (x->phase != OVER)
        arm_timer(x, now);
}

static void on_timer(struct mk_timer *timer)
{
    struct exchange *x = MK_CONTAINER_OF(timer, struct exchange, timer);
    uint64_t now = mk_loop_now_ms(x->loop);
    x->timer_ms = 0;
    if (!get_wait_ms(x))
        x->wait_end_ms = UINT64_MAX; /* what it waited for has come */
    if (get_end_ms(x) <= now)
        exchange_fail(x, -ETIMEDOUT);
    else
        arm_timer(x, now);
}

/* ── the connection ── */

static void begin_request(struct exchange *x)
{
    enum mk_response_to to = mk_request_method(x->req) == MK_HEAD ? MK_RESPONSE_TO_HEAD : MK_RESPONSE_TO_OTHER;
    if (x->phase == HANDSHAKE)
        report_ready(&x->report, mk_loop_now_us(x->loop) - x->dialed_us);
    x->phase = WAITING;
    x->sent_ms = mk_loop_now_ms(x->loop);
    report_connected(&x->report);
    download_begin(&x->down, &x->conf->limits, to);
    exchange_up_begin(x);
    exchange_touch(x);
}

/* Bytes that come with the end of the handshake are read behind the request. */
static void continue_handshake(struct exchange *x)
{
    int r = x->conn->io.transport->handshake(&x->conn->io);
    if (r == 0)
        begin_request(x);
    else if (r != -EAGAIN && r != -EINPROGRESS)
        exchange_fail(x, r);
}

static void on_conn_event(void *user, uint32_t events)
{
    struct exchange *x = user;
    if (x->phase == HANDSHAKE)
        continue_handshake(x);
    if (x->phase == HANDSHAKE)
        return;
    if (x->conn && events & EPOLLOUT)
        exchange_up_resume(x);
    if (x->conn && events & ~(uint32_t)EPOLLOUT)
        exchange_down_resume(x);
}

static void use_conn(struct exchange *x, struct backend_conn *c)
{
    x->conn = c;
    c->fn = on_conn_event;
    c->user = x;
}

static void dial_backend(struct exchange *x);

/* There was no descriptor: idle connections of this thread give theirs. Returns whether to dial again. */
static bool can_redial(struct exchange *x, int err)
{
    if ((err != -EMFILE && err != -ENFILE) || x->is_redial)
        return false;
    x->is_redial = true;
    thread_shed(x->thread);
    return true;
}

static void on_dial(struct mk_dial *dial, int fd)
{
    struct exchange *x = MK_CONTAINER_OF(dial, struct exchange, dial);
    struct backend_conn *c = NULL;
    if (fd >= 0 || fd == -EMFILE || fd == -ENFILE)
        mk_worker_note_descriptor(mk_request_worker(x->req), fd);
    if (can_redial(x, fd)) {
        dial_backend(x);
        return;
    }
    int err = fd < 0 ? fd : backend_add(x->backend, fd, x->client, mk_request_worker(x->req), &c);
    if (err < 0) {
        exchange_fail(x, err);
        return;
    }
    report_opened(&x->report);
    use_conn(x, c);
    x->phase = HANDSHAKE;
    continue_handshake(x);
}

static void dial_backend(struct exchange *x)
{
    const struct mk_dial_options options = {.timeout_ms = x->conf->connect_timeout_ms, .local = x->conf->source};
    x->phase = DIALING;
    x->dialed_us = mk_loop_now_us(x->loop);
    mk_dial_start(&x->dial, x->loop, x->backend->server ? x->backend->server->target : x->conf->to.dial, &options,
                  on_dial);
    exchange_touch(x);
}

static void connect_backend(struct exchange *x)
{
    bool can_repeat = x->is_idempotent && (x->framing.kind == REQUEST_BODY_NONE || x->framing.is_received);
    struct backend_conn *c = x->is_retry ? NULL : bound_take(x->req, x->backend);
    if (!c && !x->is_retry)
        c = backend_take_idle(x->backend, can_repeat ? UINT64_MAX : FRESH_MS);
    if (c) {
        use_conn(x, c);
        begin_request(x);
        return;
    }
    dial_backend(x);
}

/* Makes an exchange that ends with that of the server. Returns NULL without memory. */
static struct exchange *make_exchange(struct mk_request *req, const struct route *route, struct thread *t)
{
    struct owner *owner = mk_arena_zalloc(mk_request_arena(req), sizeof(*owner));
    if (!owner || mk_arena_defer(mk_request_arena(req), release, owner) < 0)
        return NULL;
    struct exchange *x = mk_account_alloc(t->account, sizeof(*x));
    owner->exchange = x;
    if (!x)
        return NULL;
    *x = (struct exchange){.owner = owner,
                           .req = req,
                           .route = route,
                           .conf = route->conf,
                           .client = route->client,
                           .thread = t,
                           .loop = mk_request_loop(req)};
    mk_timer_init(&x->timer, on_timer);
    buffer_init(&x->buffer, req, exchange_down_fill);
    return x;
}

void exchange_connect_server(struct exchange *x)
{
    x->is_retry = x->is_redial = false;
    exchange_up_rewind(x);
    connect_backend(x);
}

void exchange_reject_group(struct exchange *x, int err)
{
    bool is_full = err == -EBUSY || err == -ETIMEDOUT;
    if (err == -ENOMEM) {
        exchange_reject(x, 503);
        return;
    }
    mk_request_log(x->req, MK_LOG_ERROR, "proxy: %.*s: %s", MK_STR_ARG(x->conf->to.text),
                   !is_full        ? "no server of the group can be used"
                   : err == -EBUSY ? "all servers of the group have MaxConnections, and Queue is full"
                                   : "no server of the group had room within QueueTimeout");
    exchange_respond_failure(x, 503, is_full ? "connection_limit_reached" : "destination_unavailable", MK_STR_NONE);
}

void exchange_connect(struct exchange *x)
{
    uint32_t deadline_ms = x->conf->deadline_ms;
    x->deadline_ms = deadline_ms ? mk_loop_now_ms(x->loop) + deadline_ms : UINT64_MAX;
    if (!x->framing.is_received)
        mk_request_hold_continue(x->req);
    int r = exchange_choose_server(x);
    if (r == 0)
        connect_backend(x);
    else if (r == MK_AGAIN)
        exchange_touch(x);
    else
        exchange_reject_group(x, r);
}

void exchange_begin(struct mk_request *req, const struct route *route, struct thread *t)
{
    const struct proxy_conf *conf = route->conf;
    struct exchange *x = make_exchange(req, route, t);
    if (!x || !thread_get_buffer(t) || mk_request_wait(req, MK_REQUEST_WAIT_MAX_MS) < 0) {
        mk_response_error(req, 503);
        return;
    }
    x->framing = request_framing(req);
    x->has_trailers =
        x->framing.kind == REQUEST_BODY_CHUNKED && trailers_are_announced(req) && mk_request_keep_trailers(req) == 0;
    x->is_idempotent = request_is_idempotent(req);
    x->is_invited = !mk_request_expects_continue(req);
    if (conf->client_leave == PROXY_CLIENT_LEAVE_CANCEL)
        mk_request_end_with_client(req);
    int status = upgrade_init(&x->upgrade, req, &conf->upgrade);
    if (status) {
        mk_response_error(req, status);
        return;
    }
    report_begin(&x->report, req, route->tally, route->group != NULL);
    if (conf->spool_request_bytes && exchange_up_needs_receiving(x))
        exchange_up_receive(x);
    else
        exchange_connect(x);
}

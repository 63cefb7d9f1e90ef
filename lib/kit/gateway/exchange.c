// SPDX-License-Identifier: Apache-2.0
/*
 * The exchange with a backend. Both directions run at the same time:
 *
 *     DIALING ─► HANDSHAKE (of TLS) ─► WAITING (the request is being sent, the response awaited) ─► BODY ─► ENDED
 *        │           │                      │ a kept connection that ends before the first byte: a new one │
 *        └───────────┴──────────────────────┼──► 502, 504                                         cut ◄────┘
 *                                           └──► a tunnel, if the backend does an upgrade
 *
 * Here it begins, fails and ends; exchange_up.c chooses the server, connects and sends the request,
 * exchange_down.c reads the response. The struct lasts as long as the server's exchange, but not as long as a
 * tunnel, which needs less memory.
 */
#include "exchange.h"

#include <assert.h>
#include <errno.h>

enum { REASON_BYTES = 512 }; /* of a transport, or of a failure */

/* How long a wait may last, and the directive that says so. */
struct limit {
    const char *directive;
    uint32_t ms;
};

/* ── the end ── */

/* Tells the backend that nothing more is wanted, if its protocol can say so between what it has got, and closes. */
static void drop_conn(struct mk__gw_exchange *x)
{
    struct mk_str abort = x->call.protocol->abort;
    const struct iovec vec = {.iov_base = (char *)(uintptr_t)abort.p, .iov_len = abort.len};
    if (!x->conn)
        return;
    if (abort.len && x->up.is_sent && !x->up.is_refused && !mk__gw_upload_is_blocked(&x->up) && !x->down.has_ended)
        x->conn->io.transport->write(&x->conn->io, &vec, 1, 0); /* the end of the connection says the same */
    mk__gw_backend_close(x->conn);
    x->conn = NULL;
}

static void end_waits(struct mk__gw_exchange *x)
{
    x->phase = MK__GW_ENDED;
    mk_timer_cancel(&x->timer);
    mk_dial_cancel(&x->dial);
    if (x->route->group)
        x->route->upstreams->cancel(&x->wait);
    mk__gw_received_release(&x->received);
}

void mk__gw_exchange_finish(struct mk__gw_exchange *x)
{
    /* a backend that refuses an upgrade may have left the body unread, which would be the next request */
    bool has_upgrade_body = x->call.is_upgrade && x->body.kind != MK_GATEWAY_BODY_NONE;
    end_waits(x);
    mk__gw_report_end(&x->report);
    if (x->conn && mk__gw_upload_is_done(&x->up) && mk__gw_download_keeps_conn(&x->down) && !has_upgrade_body) {
        /* with `KeepAlive Queue` only if a request has waited for the server, which counts this one until then */
        bool is_awaited = x->conf->keep_alive == MK_GATEWAY_KEEP_QUEUE && mk__gw_exchange_end_use(x);
        if (x->conn->is_bound)
            mk__gw_bound_keep(x->req, x->conn);
        else
            mk__gw_backend_keep(x->conn, is_awaited);
    } else if (x->conn) {
        mk__gw_backend_close(x->conn);
    }
    x->conn = NULL;
    mk__gw_exchange_end_use(x);
}

void mk__gw_exchange_free(struct mk__gw_exchange *x)
{
    end_waits(x);
    drop_conn(x);
    mk__gw_upload_release(&x->up);
    mk__gw_download_release(&x->down);
    mk__gw_buffer_release(&x->buffer);
    if (x->pipe)
        mk__gw_pipe_put(x->pipe);
    if (x->report.stats)
        mk_backend_stats_add(x->report.stats, MK_BACKEND_SENT_BYTES, mk__gw_thread_get_worker(x->thread),
                             (int64_t)x->up.sent_bytes);
    mk__gw_exchange_end_use(x);
    if (x->backend)
        mk__gw_backend_put(x->backend);
    mk__gw_thread_free(x->thread, x, sizeof(*x) + x->call.protocol->state_bytes);
}

/* With `OnClientLeave Finish` a request that the backend has, or will have as a whole, is brought to its end. */
static void abandon_exchange(struct mk__gw_exchange *x)
{
    bool is_whole = x->up.is_sent && (mk__gw_upload_is_taken(&x->up) || x->received.spooled);
    if (x->conf->client_abort != MK_GATEWAY_CLIENT_ABORT_FINISH || !x->conn || x->phase < MK__GW_WAITING ||
        x->phase == MK__GW_ENDED || !is_whole || x->up.is_refused || x->buffer.is_live || x->call.is_upgrade)
        return;
    const struct mk__gw_orphan_parts parts = {.worker = mk_request_worker(x->req),
                                              .call = &x->call,
                                              .conn = x->conn,
                                              .up = &x->up,
                                              .received = &x->received,
                                              .down = &x->down,
                                              .has_head = x->phase == MK__GW_BODY,
                                              .deadline_ms = x->deadline_ms};
    if (!mk__gw_orphan_adopt(&parts))
        return;
    x->conn = NULL;
    x->backend = NULL;
    x->uses_backend = false;
}

/* The exchange of the server ends, complete or not. */
static void release_exchange(void *arg)
{
    struct mk__gw_owner *owner = arg;
    if (!owner->exchange) {
        mk__gw_tunnel_release(&owner->tunnel);
        return;
    }
    abandon_exchange(owner->exchange);
    mk__gw_exchange_free(owner->exchange);
}

/* This server responds. */
static void end_here(struct mk__gw_exchange *x)
{
    end_waits(x);
    drop_conn(x);
    mk__gw_exchange_end_use(x);
}

void mk__gw_exchange_reject(struct mk__gw_exchange *x, int status)
{
    end_here(x);
    mk_response_error(x->req, status);
}

/* ── failures ── */

void mk__gw_exchange_respond_failure(struct mk__gw_exchange *x, int status, const char *type, struct mk_str details)
{
    end_here(x);
    mk__gw_failure_respond(x->req, status, type, details);
}

void mk__gw_exchange_log_own(const struct mk__gw_exchange *x, const char *reason)
{
    mk_request_log(x->req, MK_LOG_ERROR, "%s: %.*s: %s", x->call.protocol->name, MK_STR_ARG(x->conf->to.text), reason);
}

void mk__gw_exchange_reject_memory(struct mk__gw_exchange *x)
{
    mk__gw_exchange_log_own(x, "there is no memory for the request");
    mk__gw_exchange_respond_failure(x, 503, "proxy_internal_error", MK_STR_NONE);
}

bool mk__gw_exchange_can_resend(const struct mk__gw_exchange *x)
{
    return !x->up.body_begun || x->received.spooled;
}

/* No byte of a response has come, and the request can be sent once more. */
static bool is_unanswered(const struct mk__gw_exchange *x)
{
    return !x->down.has_begun && mk__gw_exchange_can_resend(x);
}

/* The connection has ended amid the last head: the client has interim responses at most, and may get them again. */
static bool is_lost_in_head(const struct mk__gw_exchange *x, int err)
{
    return (err == -EPIPE || err == -ECONNRESET) && !x->down.has_ended && mk__gw_exchange_can_resend(x);
}

/*
 * A kept connection may have ended just before it was used, or its server ends amid its response: the request goes to a
 * new one, if it may be repeated (RFC 9110 section 9.2.2). If a server of a group has begun to answer, that is a
 * failure of which the group is told, and the group says whether another one gets the request.
 */
static bool can_retry(const struct mk__gw_exchange *x, int err)
{
    bool has_ended = x->conn && x->conn->is_reused && (err == -EPIPE || err == -ECONNRESET);
    bool is_for_group = x->route->group && x->down.has_begun;
    bool can_repeat = x->is_idempotent ? is_lost_in_head(x, err) : is_unanswered(x) && !x->up.is_sent;
    return x->phase == MK__GW_WAITING && has_ended && !is_for_group && can_repeat;
}

/* Has the transport describe its own error. Returns its type; NULL: it is not one, or a timeout or the like. */
static const char *describe_transport(const struct mk__gw_exchange *x, const struct mk__gw_failure *f, int err,
                                      struct mk_buf *reason)
{
    bool is_own = x->conn && (x->phase == MK__GW_HANDSHAKE || x->down.has_failed);
    if (!is_own || f->status != 502 || !x->conn->io.transport->describe_error)
        return NULL;
    return x->conn->io.transport->describe_error(&x->conn->io, err, reason);
}

/* The limit of the present wait; ms 0: what it waits for is the client, which the server watches, or the group. */
static struct limit get_limit(const struct mk__gw_exchange *x)
{
    const struct mk_gateway_conf *conf = x->conf;
    if (x->phase == MK__GW_QUEUED)
        return (struct limit){0};
    if (x->phase < MK__GW_WAITING)
        return (struct limit){"ConnectTimeout", conf->connect_timeout_ms};
    if (x->phase == MK__GW_WAITING && mk__gw_upload_is_blocked(&x->up))
        return (struct limit){"SendTimeout", conf->send_timeout_ms};
    if (x->phase == MK__GW_WAITING && (mk__gw_upload_is_taken(&x->up) || !x->is_continue_received))
        return (struct limit){"ResponseTimeout", conf->response_timeout_ms};
    if (x->phase == MK__GW_BODY && x->awaits_backend)
        return (struct limit){"ReadTimeout", conf->read_timeout_ms};
    return (struct limit){0};
}

/* Names the directive that a timeout has, and its value. */
static void describe_timeout(const struct mk__gw_exchange *x, struct mk_buf *out)
{
    bool is_deadline = mk_loop_now_ms(x->loop) >= x->deadline_ms;
    struct limit limit = is_deadline ? (struct limit){"Deadline", x->conf->deadline_ms} : get_limit(x);
    if (limit.ms)
        mk_buf_addf(out, " (%s is %u %s)", limit.directive, limit.ms % 1000 ? limit.ms : limit.ms / 1000,
                    limit.ms % 1000 ? "ms" : "s");
}

/*
 * Writes what has failed, for the log, and what of that the client gets: what says more than the type, which is
 * returned, but no bytes of the backend.
 */
static const char *describe_failure(const struct mk__gw_exchange *x, const struct mk__gw_failure *f, int err,
                                    struct mk_buf *reason, struct mk_str *ret_details)
{
    const char *type = describe_transport(x, f, err, reason);
    *ret_details = mk_buf_str(reason);
    if (!type && x->phase < MK__GW_WAITING)
        mk_buf_addf(reason, "%s", f->text ? f->text : mk_dial_error(err));
    else if (!type)
        *ret_details = mk__gw_failure_describe(f, &x->down, err, x->thread->buffer, reason);
    if (err == -ETIMEDOUT)
        describe_timeout(x, reason);
    return type ? type : f->type;
}

/* To another server, if there is one: this one may be about to end. */
static void retry_exchange(struct mk__gw_exchange *x)
{
    x->tries.failure = MK_UPSTREAM_KEPT_ENDED;
    if (!x->route->group || mk__gw_exchange_choose_server(x) != 0) /* without another one it stays */
        mk__gw_report_retry(&x->report, MK_UPSTREAM_KEPT_ENDED);
    drop_conn(x);
    x->is_retry = true;
    mk__gw_exchange_up_rewind(x);
    mk__gw_exchange_take_conn(x);
}

/*
 * Another server of the group gets the request, if this one has none of it, or it may be repeated. Returns 0 or
 * MK_AGAIN (it does); -ECANCELED; or the error of choose().
 */
static int try_other_server(struct mk__gw_exchange *x, int err)
{
    bool is_free = x->is_idempotent && (is_unanswered(x) || is_lost_in_head(x, err));
    bool can_repeat = x->phase == MK__GW_WAITING && (is_free || (x->down.is_refused && mk__gw_exchange_can_resend(x)));
    x->tries.failure = x->phase == MK__GW_WAITING && !x->down.is_refused ? MK_UPSTREAM_SENT : MK_UPSTREAM_NOT_REACHED;
    if (!x->route->group || x->phase == MK__GW_QUEUED || (x->phase >= MK__GW_WAITING && !can_repeat) ||
        mk_loop_now_ms(x->loop) >= x->deadline_ms)
        return -ECANCELED;
    mk_dial_cancel(&x->dial);
    int r = mk__gw_exchange_choose_server(x);
    if (r == 0)
        mk__gw_exchange_connect_server(x);
    else if (r == MK_AGAIN)
        mk__gw_exchange_touch(x);
    return r;
}

/* Tells whether the exchange waits for the backend, and not for the client: with a Deadline either may take too long.
 */
static bool is_waiting_for_backend(const struct mk__gw_exchange *x)
{
    if (x->phase == MK__GW_WAITING)
        return mk__gw_upload_is_blocked(&x->up) || mk__gw_upload_is_taken(&x->up);
    return x->phase < MK__GW_WAITING || x->awaits_backend;
}

/* What waits for the client comes before the cut, which its reader makes then. */
static void abort_response(struct mk__gw_exchange *x)
{
    end_waits(x);
    drop_conn(x);
    mk__gw_exchange_end_use(x);
    if (mk__gw_buffer_has_bytes(&x->buffer) || x->pipe)
        mk_response_wake(x->req);
    else
        mk_response_abort(x->req);
}

static void log_failure(const struct mk__gw_exchange *x, int err, const char *reason)
{
    const struct mk_upstream_server *server = x->backend ? x->backend->server : NULL;
    bool is_dial = x->phase < MK__GW_WAITING;
    const char *advice = x->call.protocol->advise ? x->call.protocol->advise(is_dial, err) : NULL;
    struct mk_str address = server ? server->address : MK_STR("");
    mk_request_log(x->req, MK_LOG_ERROR, "%s: %.*s%s%.*s: %s%s%s", x->call.protocol->name, MK_STR_ARG(x->conf->to.text),
                   server ? ", server " : "", MK_STR_ARG(address), reason, advice ? ": " : "", advice ? advice : "");
}

void mk__gw_exchange_fail(struct mk__gw_exchange *x, int err)
{
    assert(err < 0);
    if (x->phase == MK__GW_ENDED)
        return;
    const struct mk__gw_failure *f = mk__gw_failure_find(x->phase < MK__GW_WAITING, err);
    mk__gw_report_error(&x->report, f->type);
    if (can_retry(x, err)) {
        retry_exchange(x);
        return;
    }
    const struct mk_upstream_outcome outcome = {.err = err, .is_connected = x->phase >= MK__GW_WAITING};
    if (!f->is_own && (err != -ETIMEDOUT || is_waiting_for_backend(x)))
        mk__gw_exchange_report_outcome(x, &outcome);
    int r = try_other_server(x, err);
    if (r >= 0)
        return;
    MK_BUF_ON_STACK(reason, REASON_BYTES);
    struct mk_str details;
    const char *type = describe_failure(x, f, err, &reason, &details);
    mk__gw_report_failure(&x->report, err);
    log_failure(x, err, mk_buf_cstr(&reason));
    if (r == -ENXIO && !x->tries.n) { /* Hold is over, as if it had waited on */
        mk__gw_exchange_respond_failure(x, 503, "destination_unavailable", MK_STR_NONE);
        return;
    }
    if (x->phase != MK__GW_BODY) {
        mk__gw_exchange_respond_failure(x, f->status, type, details);
        return;
    }
    abort_response(x);
}

/* ── timeouts ── */

static uint64_t get_end_ms(const struct mk__gw_exchange *x)
{
    return x->wait_end_ms < x->deadline_ms ? x->wait_end_ms : x->deadline_ms;
}

static void arm_timer(struct mk__gw_exchange *x, uint64_t now)
{
    uint64_t end = get_end_ms(x);
    if (end == UINT64_MAX || (x->timer_ms && x->timer_ms <= end))
        return; /* it looks at the end when it fires */
    x->timer_ms = end;
    mk_timer_arm(x->loop, &x->timer, end > now ? (uint32_t)(end - now) : 0);
}

void mk__gw_exchange_wait(struct mk__gw_exchange *x, uint32_t ms)
{
    uint64_t now = mk_loop_now_ms(x->loop);
    x->wait_end_ms = ms ? now + ms : UINT64_MAX;
    if (x->phase != MK__GW_ENDED)
        arm_timer(x, now);
}

void mk__gw_exchange_touch(struct mk__gw_exchange *x)
{
    mk__gw_exchange_wait(x, get_limit(x).ms);
}

static void on_timer(struct mk_timer *timer)
{
    struct mk__gw_exchange *x = MK_CONTAINER_OF(timer, struct mk__gw_exchange, timer);
    uint64_t now = mk_loop_now_ms(x->loop);
    x->timer_ms = 0;
    if (!get_limit(x).ms)
        x->wait_end_ms = UINT64_MAX; /* what it waited for has come */
    if (get_end_ms(x) <= now)
        mk__gw_exchange_fail(x, -ETIMEDOUT);
    else
        arm_timer(x, now);
}

/* ── the beginning ── */

/* Makes an exchange that ends with that of the server. Returns NULL without memory. */
static struct mk__gw_exchange *make_exchange(struct mk_request *req, const struct mk_gateway_route *route,
                                             struct mk__gw_thread *t)
{
    size_t state_bytes = route->protocol->state_bytes;
    struct mk__gw_owner *owner = mk_arena_zalloc(mk_request_arena(req), sizeof(*owner));
    if (!owner || mk_arena_defer(mk_request_arena(req), release_exchange, owner) < 0)
        return NULL;
    struct mk__gw_exchange *x = mk__gw_thread_alloc(t, sizeof(*x) + state_bytes);
    owner->exchange = x;
    if (!x)
        return NULL;
    *x = (struct mk__gw_exchange){.owner = owner,
                                  .req = req,
                                  .route = route,
                                  .conf = route->conf,
                                  .client = route->client,
                                  .thread = t,
                                  .loop = mk_request_loop(req)};
    int64_t keep_alive = route->conf->keep_alive; /* says whether a connection may have a second request */
    bool keeps_conn = keep_alive == MK_GATEWAY_KEEP_QUEUE ? route->group != NULL : keep_alive > 0;
    x->call = (struct mk_gateway_call){.req = req,
                                       .protocol = route->protocol,
                                       .conf = x->conf,
                                       .state = x->state,
                                       .loop = x->loop,
                                       .host = mk_request_host_conf(req),
                                       .keeps_conn = keeps_conn};
    memset(x->state, 0, state_bytes);
    mk_timer_init(&x->timer, on_timer);
    mk__gw_buffer_init(&x->buffer, req, mk__gw_exchange_down_fill);
    return x;
}

static void reject_begin(struct mk__gw_exchange *x, int status)
{
    if (status == MK_GATEWAY_LOOP) {
        mk_request_log(x->req, MK_LOG_WARN, "%s: %.*s: a loop: as Via says, the request has passed this server before",
                       x->call.protocol->name, MK_STR_ARG(x->conf->to.text));
        mk__gw_exchange_respond_failure(x, status, "proxy_loop_detected", MK_STR_NONE);
    } else if (status == 503) {
        mk__gw_exchange_reject_memory(x);
    } else {
        mk__gw_exchange_reject(x, status);
    }
}

static void begin_exchange(struct mk__gw_exchange *x)
{
    static const uint32_t idempotent = /* RFC 9110 section 9.2.2 */
        1u << MK_GET | 1u << MK_HEAD | 1u << MK_PUT | 1u << MK_DELETE | 1u << MK_OPTIONS | 1u << MK_TRACE;
    struct mk_request *req = x->req;
    /* how the body is sent, when it is sent as it comes */
    x->body.kind = MK_GATEWAY_BODY_CHUNKED;
    if (mk_request_body_length(req, &x->body.bytes)) {
        bool has_length = x->body.bytes || mk_request_header(req, MK_HEADER_CONTENT_LENGTH).p;
        x->body.kind = has_length ? MK_GATEWAY_BODY_LENGTH : MK_GATEWAY_BODY_NONE;
    }
    x->is_idempotent = idempotent >> mk_request_method(req) & 1;
    x->is_continue_received = !mk_request_expects_continue(req);
    if (x->conf->client_abort == MK_GATEWAY_CLIENT_ABORT_CANCEL)
        mk_request_end_with_client(req);
    int status = x->call.protocol->begin ? x->call.protocol->begin(&x->call) : 0;
    if (status) {
        reject_begin(x, status);
        return;
    }
    mk__gw_report_begin(&x->report, req, x->route);
    bool is_chunked = x->body.kind == MK_GATEWAY_BODY_CHUNKED;
    bool receives =
        x->conf->spool_request_bytes ? is_chunked || x->body.bytes : is_chunked && x->call.protocol->needs_length;
    if (receives)
        mk__gw_exchange_up_receive(x);
    else
        mk__gw_exchange_connect(x);
}

void mk_gateway_pass(struct mk_request *req, const struct mk_gateway_route *route, const void *arg)
{
    const struct mk_thread_worker *w = mk_worker_state(mk_request_worker(req), route->gateway->type->plugin);
    struct mk__gw_thread *t = mk__gw_thread_of(w->thread);
    struct mk__gw_exchange *x = make_exchange(req, route, t);
    if (!t->buffer)
        t->buffer = mk_account_alloc(t->account, MK__GW_BUFFER_BYTES);
    if (!x || !t->buffer || mk_request_wait(req, MK_REQUEST_WAIT_MAX_MS) < 0) {
        mk_request_log(req, MK_LOG_ERROR, "%s: %.*s: there is no memory for the request", route->protocol->name,
                       MK_STR_ARG(route->conf->to.text));
        mk__gw_failure_respond(req, 503, "proxy_internal_error", MK_STR_NONE);
        return;
    }
    x->call.arg = arg;
    begin_exchange(x);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * The way of a request: which server it goes to, the connection, its head, and its body as it comes or once it is
 * there. All events of the connection come here.
 */
#include "exchange.h"

#include <errno.h>
#include <sys/epoll.h>

/* ── the server: that of `To`, or one of a group ── */

enum {
    PREAMBLE_BYTES_MAX = 128,
    REASON_BYTES = 512, /* of a group */
    FRESH_MS = 1000,    /* how long a connection may have been idle for a request that cannot be repeated */
};

bool mk__gw_exchange_end_use(struct mk__gw_exchange *x)
{
    bool is_passed_on = x->uses_backend && mk__gw_backend_end_use(x->backend);
    x->uses_backend = false;
    return is_passed_on;
}

/* Replaces the backend, and what belongs to the one before. `backend` may be NULL. */
static void set_backend(struct mk__gw_exchange *x, struct mk__gw_backend *backend)
{
    if (x->conn)
        mk__gw_backend_close(x->conn);
    mk__gw_exchange_end_use(x);
    if (x->backend)
        mk__gw_backend_put(x->backend);
    x->conn = NULL;
    x->backend = backend;
    x->uses_backend = backend != NULL;
    x->call.server = backend && backend->server ? backend->server->name : MK_STR("");
}

/* Takes over a request of the server. Returns 0 or -ENOMEM, and it has ended there. */
static int use_server(struct mk__gw_exchange *x, struct mk_upstream_server *server)
{
    MK_BUF_ON_STACK(preamble, PREAMBLE_BYTES_MAX);
    if (x->call.protocol->write_preamble)
        x->call.protocol->write_preamble(&x->call, &preamble);
    struct mk__gw_backend *backend = mk__gw_backend_hold(x->thread, x->route, server, mk_buf_str(&preamble));
    if (!backend && server)
        x->route->upstreams->end(server, mk__gw_thread_get_worker(x->thread));
    if (!backend)
        return -ENOMEM;
    set_backend(x, backend);
    if (server)
        mk__gw_report_server(&x->report, backend->stats, server->address, x->tries.failure);
    return 0;
}

/* No server can be used (-ENXIO), or too many requests wait (-EBUSY, -ETIMEDOUT). */
static void reject_group(struct mk__gw_exchange *x, int err)
{
    bool is_full = err == -EBUSY || err == -ETIMEDOUT;
    if (err == -ENOMEM) {
        mk__gw_exchange_reject_memory(x);
        return;
    }
    MK_BUF_ON_STACK(reason, REASON_BYTES);
    x->route->upstreams->explain(x->route->group, err, &reason);
    mk__gw_exchange_log_own(x, mk_buf_cstr(&reason));
    mk__gw_exchange_respond_failure(x, 503, is_full ? "connection_limit_reached" : "destination_unavailable",
                                    MK_STR_NONE);
}

static void on_wait_end(struct mk_upstream_wait *wait, int err, struct mk_upstream_server *server)
{
    struct mk__gw_exchange *x = MK_CONTAINER_OF(wait, struct mk__gw_exchange, wait);
    if (err == 0)
        err = use_server(x, server);
    if (err == 0)
        mk__gw_exchange_connect_server(x);
    else
        reject_group(x, err);
}

int mk__gw_exchange_choose_server(struct mk__gw_exchange *x)
{
    const struct mk_gateway_route *route = x->route;
    struct mk_upstream_server *server = NULL;
    if (route->group)
        x->wait.sticky = (struct mk_upstream_server *)(uintptr_t)mk__gw_bound_find_login(x->req, x->thread, route);
    int r =
        route->group ? route->upstreams->choose(route->group, x->req, &x->tries, &x->wait, on_wait_end, &server) : 0;
    if (r == 0)
        return use_server(x, server);
    if (r == MK_AGAIN) {
        set_backend(x, NULL);
        x->phase = MK__GW_QUEUED;
        mk__gw_exchange_up_rewind(x); /* what comes of its body is for the next server */
    }
    return r;
}

void mk__gw_exchange_report_outcome(struct mk__gw_exchange *x, const struct mk_upstream_outcome *outcome)
{
    if (x->backend && x->backend->server)
        x->route->upstreams->report(x->route->group, x->backend->server, mk_request_worker(x->req), outcome);
}

bool mk__gw_exchange_tries_after_status(struct mk__gw_exchange *x, unsigned status)
{
    if (!x->route->group || !x->is_idempotent || !mk__gw_exchange_can_resend(x) ||
        mk_loop_now_ms(x->loop) >= x->deadline_ms || status == MK_GATEWAY_LOOP)
        return false;
    x->tries.failure = MK_UPSTREAM_STATUS;
    x->tries.status = status;
    if (mk__gw_exchange_choose_server(x) != 0)
        return false;
    mk__gw_exchange_connect_server(x);
    return true;
}

void mk__gw_exchange_connect_server(struct mk__gw_exchange *x)
{
    x->is_retry = x->is_redial = false;
    mk__gw_exchange_up_rewind(x);
    mk__gw_exchange_take_conn(x);
}

/* ── the request ── */

static void pause_client(struct mk__gw_exchange *x)
{
    x->is_paused = true;
    mk_request_pause(x->req);
}

/* The backend can take what comes next of the body. */
static void resume_client(struct mk__gw_exchange *x)
{
    if (!x->is_paused || mk__gw_upload_is_blocked(&x->up))
        return;
    x->is_paused = false;
    mk_request_resume(x->req);
}

/* Some of the request was sent: the backend is waited for from now on. */
static void note_sent(struct mk__gw_exchange *x)
{
    x->sent_ms = mk_loop_now_ms(x->loop);
    mk__gw_exchange_touch(x);
}

void mk__gw_exchange_up_rewind(struct mk__gw_exchange *x)
{
    x->n_interim = 0;
    if (x->received.spooled) {
        x->up.body_begun = x->up.body_ended = false;
        mk__gw_received_rewind(&x->received); /* an error is found when it is read */
    }
    if (x->is_reading && !x->up.body_ended)
        pause_client(x); /* until there is a connection that takes its body */
}

static void take_piece(struct mk_request *req, struct mk_str piece, bool end, void *ctx)
{
    struct mk__gw_exchange *x = ctx;
    (void)req;
    if (end && x->call.has_trailers)
        x->up.body_end = x->call.protocol->write_trailers(&x->call);
    if (x->phase < MK__GW_WAITING && piece.len) {
        mk__gw_exchange_log_own(x, "a part of the body has come before there was a connection for it");
        mk__gw_exchange_respond_failure(x, 502, "proxy_internal_error", MK_STR_NONE);
        return;
    }
    if (x->phase == MK__GW_ENDED || x->phase < MK__GW_WAITING) {
        x->up.body_ended |= end;
        return;
    }
    int err = mk__gw_upload_piece(&x->up, &x->conn->io, piece, end);
    if (err < 0) {
        mk__gw_exchange_fail(x, err);
        return;
    }
    if (mk__gw_upload_is_blocked(&x->up) && !end)
        pause_client(x);
    note_sent(x);
}

/* Moves what comes next of the body by splice(2). */
static ssize_t move_piece(struct mk_request *req, int fd, size_t size, void *ctx)
{
    struct mk__gw_exchange *x = ctx;
    ssize_t n = -EBUSY;
    (void)req;
    if (x->phase == MK__GW_ENDED)
        return -EOPNOTSUPP;
    if (x->phase >= MK__GW_WAITING && !mk__gw_upload_is_blocked(&x->up)) {
        n = mk__gw_upload_splice(&x->up, &x->thread->pipes, &x->conn->io, fd, size);
        if (n == -ENOMEM)
            mk__gw_exchange_fail(x, -ENOMEM);
        if (n == -ENOMEM)
            return -EOPNOTSUPP;
        note_sent(x);
    }
    if (n == -EBUSY || mk__gw_upload_is_blocked(&x->up))
        pause_client(x);
    return n;
}

/* Has the server pass the body on as it comes. */
static void read_body(struct mk__gw_exchange *x)
{
    bool is_plain = !x->client->settings && !x->up.frames && x->body.kind == MK_GATEWAY_BODY_LENGTH;
    x->is_reading = true;
    if (is_plain && x->body.bytes >= 2 * MK__GW_SPLICE_BYTES_MIN) /* some of it comes with the head */
        mk_request_splice(x->req, take_piece, move_piece, x);
    else
        mk_request_read(x->req, take_piece, x);
}

/* Sends what the connection takes of a body that was received as a whole. */
static void send_received(struct mk__gw_exchange *x)
{
    if (!x->received.spooled || !x->conn || x->phase < MK__GW_WAITING)
        return;
    int err = mk__gw_received_send(&x->received, &x->up, &x->conn->io);
    if (err < 0)
        mk__gw_exchange_fail(x, err);
    else
        note_sent(x);
}

/* The connection can take bytes. */
static void resume_sending(struct mk__gw_exchange *x)
{
    if (!mk__gw_upload_is_blocked(&x->up))
        return;
    int err = mk__gw_upload_flush(&x->up, &x->conn->io);
    if (err < 0) {
        mk__gw_exchange_fail(x, err);
        return;
    }
    note_sent(x);
    resume_client(x);
    send_received(x);
}

/* The protocol cannot say it to the backend. */
static void reject_head(struct mk__gw_exchange *x, int err)
{
    if (err == -ENOMEM) {
        mk__gw_exchange_reject_memory(x);
        return;
    }
    if (err == -EINVAL)
        mk_response_close_connection(x->req); /* nor is what follows to be trusted */
    mk__gw_exchange_reject(x, err == -EINVAL ? 400 : 431);
}

/* Sends the request; its body follows as it comes. */
static void send_request(struct mk__gw_exchange *x)
{
    struct mk_buf head;
    mk_buf_init_fixed(&head, x->thread->buffer, MK__GW_BUFFER_BYTES);
    int err = x->call.protocol->write_head(&x->call, &x->body, &head);
    if (err < 0) {
        reject_head(x, err);
        return;
    }
    mk__gw_upload_begin(&x->up, mk_buf_str(&head), x->body.kind != MK_GATEWAY_BODY_NONE,
                        x->body.kind == MK_GATEWAY_BODY_CHUNKED ? x->call.protocol->chunked_frames
                                                                : x->call.protocol->length_frames);
    if (x->body.is_received) {
        send_received(x);
        return;
    }
    if (x->up.has_body && !x->is_reading)
        read_body(x); /* may send the head with the first piece */
    if (x->phase == MK__GW_WAITING) {
        /* the head, or what was kept of it; on a second connection also the end of a body of no bytes */
        bool has_ended = x->up.head.p && x->up.has_body && x->up.body_ended;
        err = has_ended ? mk__gw_upload_piece(&x->up, &x->conn->io, MK_STR_NONE, true)
                        : mk__gw_upload_flush(&x->up, &x->conn->io);
    }
    if (err < 0)
        mk__gw_exchange_fail(x, err);
    else
        resume_client(x);
}

/* ── the connection ── */

static void begin_request(struct mk__gw_exchange *x)
{
    enum mk_response_to to = mk_request_method(x->req) == MK_HEAD ? MK_RESPONSE_TO_HEAD : MK_RESPONSE_TO_OTHER;
    if (x->phase == MK__GW_HANDSHAKE)
        mk__gw_report_ready(&x->report, mk_loop_now_us(x->loop) - x->dialed_us);
    x->phase = MK__GW_WAITING;
    x->sent_ms = mk_loop_now_ms(x->loop);
    mk__gw_report_connected(&x->report);
    mk__gw_download_begin(&x->down, &x->call, to);
    send_request(x);
    mk__gw_exchange_touch(x);
}

/* Bytes that come with the end of the handshake are read after the request. */
static void continue_handshake(struct mk__gw_exchange *x)
{
    int r = x->conn->io.transport->handshake(&x->conn->io);
    if (r == 0)
        begin_request(x);
    else if (r != -EAGAIN && r != -EINPROGRESS)
        mk__gw_exchange_fail(x, r);
}

static void on_conn_event(void *user, uint32_t events)
{
    struct mk__gw_exchange *x = user;
    if (x->phase == MK__GW_HANDSHAKE)
        continue_handshake(x);
    if (x->phase == MK__GW_HANDSHAKE)
        return;
    if (x->conn && events & EPOLLOUT)
        resume_sending(x);
    if (x->conn && events & ~(uint32_t)EPOLLOUT)
        mk__gw_exchange_down_resume(x);
}

static void use_conn(struct mk__gw_exchange *x, struct mk__gw_backend_conn *c)
{
    x->conn = c;
    c->fn = on_conn_event;
    c->user = x;
}

static void dial_backend(struct mk__gw_exchange *x);

/* There was no descriptor: idle connections of this thread give theirs. Returns whether to dial again. */
static bool can_redial(struct mk__gw_exchange *x, int err)
{
    if ((err != -EMFILE && err != -ENFILE) || x->is_redial)
        return false;
    x->is_redial = true;
    mk__gw_thread_shed(x->thread);
    return true;
}

static void on_dial(struct mk_dial *dial, int fd)
{
    struct mk__gw_exchange *x = MK_CONTAINER_OF(dial, struct mk__gw_exchange, dial);
    struct mk__gw_backend_conn *c = NULL;
    if (fd >= 0 || fd == -EMFILE || fd == -ENFILE)
        mk_worker_note_descriptor(mk_request_worker(x->req), fd);
    if (can_redial(x, fd)) {
        dial_backend(x);
        return;
    }
    int err = fd < 0 ? fd : mk__gw_backend_add(x->backend, fd, x->client, mk_request_worker(x->req), &c);
    if (err < 0) {
        mk__gw_exchange_fail(x, err);
        return;
    }
    mk__gw_report_opened(&x->report);
    use_conn(x, c);
    x->phase = MK__GW_HANDSHAKE;
    continue_handshake(x);
}

static void dial_backend(struct mk__gw_exchange *x)
{
    const struct mk_dial_options options = {.timeout_ms = x->conf->connect_timeout_ms, .local = x->conf->source};
    x->phase = MK__GW_DIALING;
    x->dialed_us = mk_loop_now_us(x->loop);
    mk_dial_start(&x->dial, x->loop, x->backend->server ? x->backend->server->target : x->conf->to.dial, &options,
                  on_dial);
    mk__gw_exchange_touch(x);
}

void mk__gw_exchange_take_conn(struct mk__gw_exchange *x)
{
    bool can_repeat = x->is_idempotent && (x->body.kind == MK_GATEWAY_BODY_NONE || x->body.is_received);
    uint64_t age_ms = can_repeat ? UINT64_MAX : x->conf->keep_alive > 0 ? FRESH_MS : 0;
    struct mk__gw_backend_conn *c = NULL;
    if (!x->is_retry && x->backend->n_bound)
        c = mk__gw_bound_take(x->req, x->backend, age_ms);
    if (!x->is_retry && !c)
        c = mk__gw_backend_take_idle(x->backend, age_ms);
    if (c) {
        use_conn(x, c);
        begin_request(x);
        return;
    }
    dial_backend(x);
}

void mk__gw_exchange_connect(struct mk__gw_exchange *x)
{
    uint32_t deadline_ms = x->conf->deadline_ms;
    x->deadline_ms = deadline_ms ? mk_loop_now_ms(x->loop) + deadline_ms : UINT64_MAX;
    if (!x->body.is_received)
        mk_request_hold_continue(x->req);
    int r = mk__gw_exchange_choose_server(x);
    if (r == 0)
        mk__gw_exchange_take_conn(x);
    else if (r == MK_AGAIN)
        mk__gw_exchange_touch(x);
    else
        reject_group(x, r);
}

/* ── a body that is received first ── */

static void reject_body(struct mk__gw_exchange *x, int err)
{
    if (err == -EFBIG) {
        mk__gw_exchange_reject(x, 413);
        return;
    }
    mk_request_log(x->req, MK_LOG_ERROR, "%s: the body of a request cannot be kept in %s: %s", x->call.protocol->name,
                   x->route->spool_folder, strerror(-err));
    mk__gw_exchange_respond_failure(x, 503, "proxy_internal_error", MK_STR_NONE);
}

static void on_received(struct mk__gw_received *r, int err)
{
    struct mk__gw_exchange *x = MK_CONTAINER_OF(r, struct mk__gw_exchange, received);
    if (x->body.is_received) {
        send_received(x);
    } else if (err < 0) {
        reject_body(x, err);
    } else {
        x->body = (struct mk_gateway_body){.kind = MK_GATEWAY_BODY_LENGTH,
                                           .bytes = mk__gw_received_length(r),
                                           .is_received = true};
        x->is_continue_received = true;
        mk__gw_exchange_connect(x);
    }
}

void mk__gw_exchange_up_receive(struct mk__gw_exchange *x)
{
    uint64_t bytes_max = x->conf->spool_request_bytes ? x->conf->spool_request_bytes : UINT64_MAX;
    int err = mk__gw_received_begin(&x->received, x->req, bytes_max, on_received);
    if (err < 0)
        reject_body(x, err);
}

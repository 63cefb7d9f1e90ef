// SPDX-License-Identifier: Apache-2.0
/*
 * The exchange with a backend. Both directions run at the same time:
 *
 *     DIALING ─► HANDSHAKE (of TLS) ─► WAITING (the request is being sent, the response awaited) ─► BODY ─► OVER
 *        │           │                      │ a kept connection that ends before the first byte: a new one │
 *        └───────────┴──────────────────────┼──► 502, 504                                         cut ◄────┘
 *                                           └──► a tunnel (tunnel.h), if the backend does an upgrade
 *
 * All events come here: of the connection, the client's body, the room for the response, timers. The struct lasts as
 * long as the server's exchange, but not as long as a tunnel, which needs less memory.
 */
#include "exchange.h"

#include "bound.h"
#include "buffer.h"
#include "download.h"
#include "failure.h"
#include "orphan.h"
#include "received.h"
#include "report.h"
#include "request.h"
#include "response.h"
#include "trailers.h"
#include "tunnel.h"
#include "upload.h"

#include <assert.h>
#include <errno.h>
#include <sys/epoll.h>

enum {
    FRESH_MS = 1000, /* how long a connection may have been idle for a request that cannot be repeated */
    INTERIM_MAX = 16,
    REASON_BYTES = 512, /* of a transport, or of a failure */
};

enum phase {
    DIALING,
    HANDSHAKE, /* within the time of the dial */
    WAITING,   /* for the head of the response */
    BODY,      /* the head was passed to the client */
    OVER,      /* it has no connection any more */
};

struct exchange;

/* In the arena of the request. */
struct owner {
    struct exchange *exchange; /* NULL: it has become a tunnel */
    struct tunnel tunnel;
};

struct exchange {
    struct owner *owner;
    struct mk_request *req;
    const struct proxy_conf *conf;
    const struct client *client;
    struct thread *thread;
    struct mk_loop *loop;
    struct backend *backend;
    struct backend_conn *conn; /* or NULL */
    struct report report;
    struct mk_dial dial;
    struct mk_timer timer;
    uint64_t timer_ms;                 /* when it fires; 0: it is not armed */
    uint64_t wait_end_ms, deadline_ms; /* UINT64_MAX: none */
    uint8_t phase;                     /* enum phase */
    struct framing framing;
    bool is_idempotent;
    bool is_invited; /* the client does not wait for a 100 (Continue) */
    bool is_retry;
    bool is_redial;      /* there was no descriptor for the dial */
    bool has_trailers;   /* the client has announced some */
    bool is_reading;     /* the request's body has a reader */
    bool is_paused;      /* the client, until the backend has taken what waits */
    bool awaits_bytes;   /* the client takes bytes, and there are none */
    bool awaits_backend; /* for bytes of the body */
    unsigned n_interim;
    struct received received; /* the body, with SpoolRequest */
    struct upload up;
    struct download down;
    struct buffer buffer;
    struct upgrade upgrade;
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
    received_release(&x->received);
}

static void keep_conn(struct exchange *x)
{
    if (x->conn->is_bound)
        bound_keep(x->req, x->conn);
    else
        backend_keep(x->conn);
}

/* The response is complete: the connection is kept, if all is as it should be. */
static void finish(struct exchange *x)
{
    end_waits(x);
    report_end(&x->report);
    if (x->conn && upload_is_done(&x->up) && download_keeps_conn(&x->down))
        keep_conn(x);
    else if (x->conn)
        backend_close(x->conn);
    x->conn = NULL;
}

static void free_exchange(struct exchange *x)
{
    end_waits(x);
    drop_conn(x);
    upload_release(&x->up);
    download_release(&x->down);
    buffer_release(&x->buffer);
    if (x->report.tally)
        tally_add(x->report.tally, TALLY_SENT_BYTES, thread_get_worker(x->thread), (int64_t)x->up.sent_bytes);
    if (x->backend)
        backend_release(x->backend);
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
}

/* The exchange of the server ends, complete or not. */
static void release(void *arg)
{
    struct owner *owner = arg;
    if (owner->exchange) {
        abandon(owner->exchange);
        free_exchange(owner->exchange);
    }
    tunnel_release(&owner->tunnel);
}

/* Responds instead of the backend. */
static void reject(struct exchange *x, int status)
{
    end_waits(x);
    drop_conn(x);
    mk_response_error(x->req, status);
}

/* ── failures ── */

/* Responds instead of the backend, and says why; `details` may be empty. */
static void respond_failure(struct exchange *x, int status, const char *type, struct mk_str details)
{
    char storage[2 * REASON_BYTES + 128];
    struct mk_buf value;
    struct mk_request *req = x->req;
    mk_buf_init_fixed(&value, storage, sizeof(storage));
    failure_write(&value, type, details);
    reject(x, status);
    mk_response_header(req, MK_STR("Proxy-Status"), mk_buf_str(&value));
}

static void pause_client(struct exchange *x)
{
    x->is_paused = true;
    mk_request_pause(x->req);
}

/* The backend can take what comes next of the body. */
static void resume_client(struct exchange *x)
{
    if (!x->is_paused || upload_is_blocked(&x->up))
        return;
    x->is_paused = false;
    mk_request_resume(x->req);
}

/*
 * A kept connection may have ended just before it was used: the request goes to a new one, if it may be repeated
 * (RFC 9110 section 9.2.2).
 */
static bool can_retry(const struct exchange *x, int err)
{
    return x->phase == WAITING && x->conn && x->conn->is_reused && (err == -EPIPE || err == -ECONNRESET) &&
           !x->down.has_begun && (!x->up.body_begun || x->received.spooled) && (x->is_idempotent || !x->up.is_sent);
}

/* Has the transport describe an error of its own. Returns its type; NULL: it is not one, or a timeout or the like. */
static const char *describe_failure(const struct exchange *x, const struct failure *f, int err, struct mk_buf *reason)
{
    bool is_own = x->conn && (x->phase == HANDSHAKE || x->down.has_failed);
    if (!is_own || f->status != 502 || !x->conn->io.transport->describe_error)
        return NULL;
    return x->conn->io.transport->describe_error(&x->conn->io, err, reason);
}

static void retry(struct exchange *x)
{
    report_retry(&x->report);
    drop_conn(x);
    x->is_retry = true;
    if (x->received.spooled) {
        x->up.body_begun = x->up.body_ended = false;
        received_rewind(&x->received); /* an error is found when it is read */
    }
    if (x->is_reading && !x->up.body_ended)
        pause_client(x); /* until there is a connection that takes its body */
    connect_backend(x);
}

static void fail(struct exchange *x, int err)
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
    const struct failure *f = failure_find(x->phase < WAITING, err);
    mk_buf_init_fixed(&reason, storage, sizeof(storage));
    const char *type = describe_failure(x, f, err, &reason);
    if (!type)
        mk_buf_addf(&reason, "%s", f->text ? f->text : x->phase < WAITING ? mk_dial_error(err) : strerror(-err));
    report_failure(&x->report, err);
    mk_request_log(x->req, MK_LOG_ERROR, "proxy: %.*s: %s", MK_STR_ARG(x->conf->to.text), mk_buf_cstr(&reason));
    if (x->phase != BODY) {
        respond_failure(x, f->status, type ? type : f->type, type ? mk_buf_str(&reason) : MK_STR_NONE);
        return;
    }
    end_waits(x);
    drop_conn(x);
    mk_response_abort(x->req);
}

/* ── timeouts ── */

/* How long the present wait may last; 0: what it waits for is the client, which the server watches. */
static uint32_t get_wait_ms(const struct exchange *x)
{
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

/* Something has happened: the present wait begins anew. */
static void touch(struct exchange *x)
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
        fail(x, -ETIMEDOUT);
    else
        arm_timer(x, now);
}

/* ── the request ── */

static void take_piece(struct mk_request *req, struct mk_str piece, bool end, void *ctx)
{
    struct exchange *x = ctx;
    if (end && x->has_trailers)
        x->up.last_chunk = trailers_make_chunk(req, &x->conf->request);
    if (x->phase == OVER || x->phase < WAITING) {
        x->up.body_ended |= end;
        return;
    }
    int err = upload_piece(&x->up, &x->conn->io, piece, end);
    if (err < 0) {
        fail(x, err);
        return;
    }
    if (upload_is_blocked(&x->up) && !end)
        pause_client(x);
    touch(x);
}

/* Sends what the connection takes of a body that was received as a whole. */
static void send_received(struct exchange *x)
{
    if (!x->received.spooled || !x->conn || x->phase < WAITING)
        return;
    int err = received_send(&x->received, &x->up, &x->conn->io);
    if (err < 0)
        fail(x, err);
    else
        touch(x);
}

/* The connection can take bytes. */
static void resume_upload(struct exchange *x)
{
    if (!upload_is_blocked(&x->up))
        return;
    int err = upload_flush(&x->up, &x->conn->io);
    if (err < 0) {
        fail(x, err);
        return;
    }
    touch(x);
    resume_client(x);
    send_received(x);
}

/* Sends the head, or what was kept of it; on a second connection also the end of a body of no bytes. */
static int send_head(struct exchange *x)
{
    struct mk_io *io = &x->conn->io;
    bool has_ended = x->up.head.p && x->up.has_body && x->up.body_ended;
    return has_ended ? upload_piece(&x->up, io, MK_STR_NONE, true) : upload_flush(&x->up, io);
}

/* Sends the request; its body follows as it comes. */
static void begin_upload(struct exchange *x)
{
    struct mk_buf head;
    mk_buf_init_fixed(&head, x->thread->buffer, THREAD_BUFFER_BYTES);
    int err = request_write_head(&head, x->req, x->conf, &x->upgrade, &x->framing);
    if (err == -EINVAL)
        mk_response_close_connection(x->req); /* nor is what follows to be trusted */
    if (err < 0) {
        reject(x, err == -EINVAL ? 400 : 431);
        return;
    }
    bool has_body = x->framing.kind != REQUEST_BODY_NONE && !x->upgrade.token.len; /* of an upgrade it has no byte */
    upload_begin(&x->up, mk_buf_str(&head), has_body, x->framing.kind == REQUEST_BODY_CHUNKED);
    if (x->framing.is_received) {
        send_received(x);
        return;
    }
    if (x->up.has_body && !x->is_reading) {
        x->is_reading = true;
        mk_request_read(x->req, take_piece, x); /* may send the head with the first piece */
    }
    err = x->phase == WAITING ? send_head(x) : 0;
    if (err < 0)
        fail(x, err);
    else
        resume_client(x);
}

/* ── the response ── */

/* Reads what comes next of the body. Returns as download_body(). */
static ssize_t read_body(struct exchange *x, char *to, size_t size)
{
    ssize_t n = download_body(&x->down, x->conn, to, size);
    x->awaits_backend = n == -EAGAIN;
    if (n == -EAGAIN)
        touch(x);
    else if (n < 0)
        fail(x, (int)n);
    else if (x->down.parser.is_done)
        finish(x);
    return n;
}

/* All of the body is with the client, or on its way there. */
static void end_body(struct exchange *x)
{
    if (x->down.parser.is_done && !buffer_has_bytes(&x->buffer))
        response_add_trailers(x->req, &x->down.trailers);
}

/* Reads what the client does not take now. */
static void fill_buffer(struct buffer *buffer)
{
    struct exchange *x = MK_CONTAINER_OF(buffer, struct exchange, buffer);
    int err = 0;
    while (err == 0 && x->phase == BODY && !x->awaits_bytes) {
        err = buffer_room(buffer);
        if (err != 0)
            break;
        char *bytes = x->thread->buffer;
        ssize_t n = read_body(x, bytes, THREAD_BUFFER_BYTES);
        err = buffer_add(buffer, mk_str(bytes, n < 0 ? 0 : (size_t)n), x->down.parser.is_done);
        if (n < 0)
            break;
        end_body(x);
    }
    if (err < 0)
        fail(x, err);
}

/* Gives the client what waits or has come, when it takes bytes. */
static ssize_t generate(struct mk_request *req, char *to, size_t size, void *ctx)
{
    struct exchange *x = ctx;
    bool has_bytes = buffer_has_bytes(&x->buffer);
    (void)req;
    buffer_note_asked(&x->buffer);
    if (!has_bytes && x->phase != BODY)
        return x->down.parser.is_done ? 0 : -EPIPE;
    ssize_t n = has_bytes ? buffer_read(&x->buffer, to, size) : read_body(x, to, size);
    x->awaits_bytes = n == -EAGAIN && !has_bytes;
    if (n >= 0)
        end_body(x);
    if (n > 0 && x->phase == BODY && !buffer_has_bytes(&x->buffer) && !x->conn->is_drained)
        buffer_offer(&x->buffer);
    return n;
}

/* Passes the body on: what came with the head, and then what comes. */
static void begin_body(struct exchange *x)
{
    int err;
    struct mk_str first = download_first(&x->down, &err);
    if (err < 0) {
        fail(x, err); /* the head has not left yet */
        return;
    }
    x->phase = BODY;
    if (upload_is_done(&x->up))
        received_release(&x->received); /* it will not be repeated */
    buffer_begin(&x->buffer, &x->conf->buffer);
    int r = first.len ? mk_response_write(x->req, first) : 0;
    if (x->down.parser.is_done) {
        response_add_trailers(x->req, &x->down.trailers);
        finish(x);
    } else if (r >= 0) {
        r = mk_response_generate(x->req, generate, x);
        if (!x->conn->is_drained)
            buffer_offer(&x->buffer);
    }
    if (r == -ENOMEM)
        mk_response_abort(x->req);
    else
        mk_response_end(x->req);
}

/* The connection becomes a tunnel; bytes that came with the head are its first. Returns 0 or -errno. */
static int switch_protocols(struct exchange *x, struct mk_str head)
{
    const struct mk_response_parser *p = &x->down.parser;
    const struct mk_field *fields = x->down.fields;
    if (!upgrade_is_agreed(&x->upgrade, response_find(p, fields, head, MK_STR("Upgrade")),
                           response_find(p, fields, head, MK_STR("Sec-WebSocket-Accept"))))
        return -EPROTO;
    int err = response_pass_upgrade(x->req, x->conf, p, fields, head, x->upgrade.token);
    if (err >= 0)
        err = tunnel_open(&x->owner->tunnel, x->req, x->conn, mk_str(x->down.rest, x->down.rest_len));
    if (err < 0)
        return err;
    report_end(&x->report);
    x->conn = NULL;
    x->backend = NULL;
    x->owner->exchange = NULL;
    return 0;
}

/* The server responds in place of the backend, whose connection is kept if it has sent all of its response. */
static void discard_response(struct exchange *x)
{
    int err;
    download_first(&x->down, &err);
    if (err < 0 || !x->down.parser.is_done)
        drop_conn(x);
    finish(x);
}

static int respond_page(struct exchange *x, struct mk_str head)
{
    discard_response(x);
    mk_response_error(x->req, x->down.parser.status);
    response_keep_for_error(x->req, x->conf, &x->down.parser, x->down.fields, head);
    return MK_DECLINED;
}

static int respond_file(struct exchange *x, struct mk_str head, const struct named_file *named)
{
    discard_response(x);
    if (response_keep_for_file(x->req, x->conf, &x->down.parser, x->down.fields, head) < 0)
        mk_response_error(x->req, 502);
    else
        send_file_respond(x->req, &x->conf->send_file, named);
    return MK_DECLINED;
}

/*
 * Returns 0 (the last head was passed on), MK_AGAIN (another one follows), MK_DECLINED (the server responds instead) or
 * -errno.
 */
static int take_head(struct exchange *x, struct mk_str head)
{
    if (x->down.parser.status == 101 || x->down.parser.status >= 200)
        report_head(&x->report, x->down.parser.status);
    if (x->down.parser.status == 101)
        return switch_protocols(x, head);
    if (x->upgrade.is_extended_connect && x->down.parser.status / 100 == 2)
        return -EPROTO; /* the client would take it for an open tunnel */
    if (x->down.parser.status < 200 && ++x->n_interim > INTERIM_MAX)
        return -ELOOP;
    if (x->down.parser.status < 200) {
        x->is_invited |= x->down.parser.status == 100;
        response_pass_interim(x->req, x->conf, &x->down.parser, x->down.fields, head);
        return MK_AGAIN;
    }
    x->conn->is_bound |= response_binds_conn(x->req, &x->down.parser, x->down.fields, head);
    if (intercept_has(&x->conf->intercept, x->down.parser.status))
        return respond_page(x, head);
    struct named_file named;
    int has_file = x->conf->send_file.n ? response_find_file(x->req, &x->down.parser, x->down.fields, head, &named) : 0;
    if (has_file)
        return has_file < 0 ? has_file : respond_file(x, head, &named);
    return response_pass_head(x->req, x->conf, &x->down.parser, x->down.fields, head);
}

static void read_heads(struct exchange *x)
{
    int r = MK_AGAIN;
    while (r == MK_AGAIN) {
        struct mk_str head;
        r = download_head(&x->down, x->conn, mk_request_arena(x->req), x->thread->fields, x->thread->buffer,
                          THREAD_BUFFER_BYTES, &head);
        if (r == 0)
            r = take_head(x, head);
    }
    if (r == 0 && !x->owner->exchange)
        free_exchange(x);
    else if (r == 0)
        begin_body(x);
    else if (r < 0 && r != -EAGAIN)
        fail(x, r);
}

static void resume_download(struct exchange *x)
{
    x->awaits_backend = false;
    if (x->phase == WAITING) {
        read_heads(x);
    } else if (x->awaits_bytes) {
        x->awaits_bytes = false;
        mk_response_wake(x->req);
    } else if (x->phase == BODY) {
        buffer_offer(&x->buffer);
    }
}

/* ── the connection ── */

static void begin_request(struct exchange *x)
{
    enum mk_response_to to = mk_request_method(x->req) == MK_HEAD ? MK_RESPONSE_TO_HEAD : MK_RESPONSE_TO_OTHER;
    x->phase = WAITING;
    report_connected(&x->report);
    download_begin(&x->down, &x->conf->limits, to);
    begin_upload(x);
    touch(x);
}

/* Bytes that come with the end of the handshake are read behind the request. */
static void continue_handshake(struct exchange *x)
{
    int r = x->conn->io.transport->handshake(&x->conn->io);
    if (r == 0)
        begin_request(x);
    else if (r != -EAGAIN && r != -EINPROGRESS)
        fail(x, r);
}

static void on_conn_event(void *user, uint32_t events)
{
    struct exchange *x = user;
    if (x->phase == HANDSHAKE)
        continue_handshake(x);
    if (x->phase == HANDSHAKE)
        return;
    if (x->conn && events & EPOLLOUT)
        resume_upload(x);
    if (x->conn && events & ~(uint32_t)EPOLLOUT)
        resume_download(x);
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
        fail(x, err);
        return;
    }
    report_opened(&x->report);
    use_conn(x, c);
    x->phase = HANDSHAKE;
    continue_handshake(x);
}

static void dial_backend(struct exchange *x)
{
    const struct mk_dial_options options = {.timeout_ms = x->conf->connect_timeout_ms};
    x->phase = DIALING;
    mk_dial_start(&x->dial, x->loop, x->conf->to.dial, &options, on_dial);
    touch(x);
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
                           .conf = route->conf,
                           .client = route->client,
                           .thread = t,
                           .loop = mk_request_loop(req)};
    mk_timer_init(&x->timer, on_timer);
    buffer_init(&x->buffer, req, fill_buffer);
    return x;
}

/* Begins upstream: with a request whose body is there, or follows as it comes. */
static void begin_upstream(struct exchange *x)
{
    uint32_t deadline_ms = x->conf->deadline_ms;
    x->deadline_ms = deadline_ms ? mk_loop_now_ms(x->loop) + deadline_ms : UINT64_MAX;
    if (!x->framing.is_received)
        mk_request_hold_continue(x->req);
    connect_backend(x);
}

/* ── a body that is received first ── */

static void reject_body(struct exchange *x, int err)
{
    if (err == -EFBIG) {
        reject(x, 413);
        return;
    }
    mk_request_log(x->req, MK_LOG_ERROR, "proxy: the body of a request cannot be kept: %s", strerror(-err));
    respond_failure(x, 503, "proxy_internal_error", MK_STR_NONE);
}

static void on_received(struct received *r, int err)
{
    struct exchange *x = MK_CONTAINER_OF(r, struct exchange, received);
    if (x->framing.is_received) {
        send_received(x);
    } else if (err < 0) {
        reject_body(x, err);
    } else {
        x->framing = (struct framing){.kind = REQUEST_BODY_LENGTH, .bytes = received_length(r), .is_received = true};
        x->is_invited = true;
        begin_upstream(x);
    }
}

static bool needs_receiving(const struct exchange *x)
{
    return !x->upgrade.token.len && (x->framing.kind == REQUEST_BODY_CHUNKED || x->framing.bytes);
}

static void receive_request(struct exchange *x)
{
    int err = received_begin(&x->received, x->req, x->conf->spool_request_bytes, on_received);
    if (err < 0)
        reject_body(x, err);
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
    x->backend = status ? NULL : backend_hold(t, route);
    if (!x->backend) {
        mk_response_error(req, status ? status : 503);
        return;
    }
    report_begin(&x->report, req, x->backend);
    if (conf->spool_request_bytes && needs_receiving(x))
        receive_request(x);
    else
        begin_upstream(x);
}

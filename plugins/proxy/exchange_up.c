// SPDX-License-Identifier: Apache-2.0
/*
 * The way of a request to the backend (exchange_state.h): its head, and its body as it comes or once it is there.
 */
#include "exchange_state.h"

#include "trailers.h"

#include <errno.h>

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

void exchange_up_rewind(struct exchange *x)
{
    if (x->received.spooled) {
        x->up.body_begun = x->up.body_ended = false;
        received_rewind(&x->received); /* an error is found when it is read */
    }
    if (x->is_reading && !x->up.body_ended)
        pause_client(x); /* until there is a connection that takes its body */
}

static void take_piece(struct mk_request *req, struct mk_str piece, bool end, void *ctx)
{
    struct exchange *x = ctx;
    if (end && x->has_trailers)
        x->up.last_chunk = trailers_make_chunk(req, &x->conf->request);
    if (x->phase < WAITING && piece.len) {
        exchange_reject(x, 502); /* it would be missing */
        return;
    }
    if (x->phase == OVER || x->phase < WAITING) {
        x->up.body_ended |= end;
        return;
    }
    int err = upload_piece(&x->up, &x->conn->io, piece, end);
    if (err < 0) {
        exchange_fail(x, err);
        return;
    }
    if (upload_is_blocked(&x->up) && !end)
        pause_client(x);
    exchange_touch(x);
}

/* Moves what comes next of the body by splice(2). */
static ssize_t move_piece(struct mk_request *req, int fd, size_t size, void *ctx)
{
    struct exchange *x = ctx;
    ssize_t n = -EBUSY;
    (void)req;
    if (x->phase == OVER)
        return -EOPNOTSUPP;
    if (x->phase >= WAITING && !upload_is_blocked(&x->up)) {
        n = upload_splice(&x->up, &x->thread->pipes, &x->conn->io, fd, size);
        if (n == -ENOMEM)
            exchange_fail(x, -ENOMEM);
        if (n == -ENOMEM)
            return -EOPNOTSUPP;
        exchange_touch(x);
    }
    if (n == -EBUSY || upload_is_blocked(&x->up))
        pause_client(x);
    return n;
}

/* Has the server pass the body on as it comes. */
static void read_body(struct exchange *x)
{
    bool is_plain = !x->client->settings && x->framing.kind == REQUEST_BODY_LENGTH;
    x->is_reading = true;
    if (is_plain && x->framing.bytes >= 2 * SPLICE_BYTES_MIN) /* some of it comes with the head */
        mk_request_splice(x->req, take_piece, move_piece, x);
    else
        mk_request_read(x->req, take_piece, x);
}

/* Sends what the connection takes of a body that was received as a whole. */
static void send_received(struct exchange *x)
{
    if (!x->received.spooled || !x->conn || x->phase < WAITING)
        return;
    int err = received_send(&x->received, &x->up, &x->conn->io);
    if (err < 0)
        exchange_fail(x, err);
    else
        exchange_touch(x);
}

void exchange_up_resume(struct exchange *x)
{
    if (!upload_is_blocked(&x->up))
        return;
    int err = upload_flush(&x->up, &x->conn->io);
    if (err < 0) {
        exchange_fail(x, err);
        return;
    }
    exchange_touch(x);
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

void exchange_up_begin(struct exchange *x)
{
    struct mk_buf head;
    mk_buf_init_fixed(&head, x->thread->buffer, THREAD_BUFFER_BYTES);
    int err = request_write_head(&head, x->req, x->conf, &x->upgrade, &x->framing);
    if (err == -EINVAL)
        mk_response_close_connection(x->req); /* nor is what follows to be trusted */
    if (err < 0) {
        exchange_reject(x, err == -EINVAL ? 400 : 431);
        return;
    }
    bool has_body = x->framing.kind != REQUEST_BODY_NONE && !x->upgrade.token.len; /* of an upgrade it has no byte */
    upload_begin(&x->up, mk_buf_str(&head), has_body, x->framing.kind == REQUEST_BODY_CHUNKED);
    if (x->framing.is_received) {
        send_received(x);
        return;
    }
    if (x->up.has_body && !x->is_reading)
        read_body(x); /* may send the head with the first piece */
    err = x->phase == WAITING ? send_head(x) : 0;
    if (err < 0)
        exchange_fail(x, err);
    else
        resume_client(x);
}

/* ── a body that is received first ── */

static void reject_body(struct exchange *x, int err)
{
    if (err == -EFBIG) {
        exchange_reject(x, 413);
        return;
    }
    mk_request_log(x->req, MK_LOG_ERROR, "proxy: the body of a request cannot be kept: %s", strerror(-err));
    exchange_respond_failure(x, 503, "proxy_internal_error", MK_STR_NONE);
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
        exchange_connect(x);
    }
}

bool exchange_up_needs_receiving(const struct exchange *x)
{
    return !x->upgrade.token.len && (x->framing.kind == REQUEST_BODY_CHUNKED || x->framing.bytes);
}

void exchange_up_receive(struct exchange *x)
{
    int err = received_begin(&x->received, x->req, x->conf->spool_request_bytes, on_received);
    if (err < 0)
        reject_body(x, err);
}

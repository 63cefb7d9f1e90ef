// SPDX-License-Identifier: Apache-2.0
/*
 * The way of a request to the backend (exchange.h): its head, and its body as it comes or once it is there.
 */
#include "exchange.h"

#include <errno.h>

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

void mk__gw_exchange_up_resume(struct mk__gw_exchange *x)
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

/* Sends the head, or what was kept of it; on a second connection also the end of a body of no bytes. */
static int send_head(struct mk__gw_exchange *x)
{
    struct mk_io *io = &x->conn->io;
    bool has_ended = x->up.head.p && x->up.has_body && x->up.body_ended;
    return has_ended ? mk__gw_upload_piece(&x->up, io, MK_STR_NONE, true) : mk__gw_upload_flush(&x->up, io);
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

void mk__gw_exchange_up_begin(struct mk__gw_exchange *x)
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
    err = x->phase == MK__GW_WAITING ? send_head(x) : 0;
    if (err < 0)
        mk__gw_exchange_fail(x, err);
    else
        resume_client(x);
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

bool mk__gw_exchange_up_needs_receiving(const struct mk__gw_exchange *x)
{
    bool is_chunked = x->body.kind == MK_GATEWAY_BODY_CHUNKED;
    return x->conf->spool_request_bytes ? is_chunked || x->body.bytes : is_chunked && x->call.protocol->needs_length;
}

void mk__gw_exchange_up_receive(struct mk__gw_exchange *x)
{
    uint64_t bytes_max = x->conf->spool_request_bytes ? x->conf->spool_request_bytes : UINT64_MAX;
    int err = mk__gw_received_begin(&x->received, x->req, bytes_max, on_received);
    if (err < 0)
        reject_body(x, err);
}

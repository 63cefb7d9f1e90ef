// SPDX-License-Identifier: Apache-2.0
/*
 * The body of the request: into the pipe as it comes, or once it was received as a whole. The client is
 * paused while the script does not read.
 */
#include "cgi.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { UNSENT_BYTES_MAX = 1024 * 1024 };

static void close_input(struct run *r)
{
    run_close_fd(r, &r->in, &r->in_is_watched);
    mk_buf_release(&r->unsent);
    run_close_spool(&r->received);
    if (r->req && r->is_paused)
        mk_request_resume(r->req); /* what follows is dropped */
    r->is_paused = false;
}

void run_input_release(struct run *r)
{
    r->is_paused = false;
    close_input(r);
}

bool run_input_awaits_client(const struct run *r)
{
    return r->in.fd >= 0 && !r->is_received && !r->body_ended && !r->unsent.len && r->phase >= HEAD;
}

/* ── to the script ── */

/* Writes what the pipe takes. Returns the number of bytes, 0 if it takes none now, or -EPIPE: it is not read. */
static ssize_t write_input(struct run *r, struct mk_str bytes)
{
    ssize_t n;
    do
        n = write(r->in.fd, bytes.p, bytes.len);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return errno == EAGAIN ? 0 : -EPIPE;
    return n;
}

static void on_input(struct mk_event *event, uint32_t events);

/* Waits until the pipe takes more. */
static void await_room(struct run *r)
{
    r->in.ready = on_input;
    if (run_watch(r, &r->in, &r->in_is_watched, EPOLLOUT) < 0)
        run_fail(r, 503);
}

/* ── as it comes ── */

/* Writes a piece after what waits. Returns false if the run has failed. */
static bool send_piece(struct run *r, struct mk_str piece)
{
    ssize_t n = r->unsent.len ? 0 : write_input(r, piece);
    if (n < 0) {
        close_input(r); /* a script need not read all */
        return true;
    }
    if (n == (ssize_t)piece.len)
        return true;
    mk_buf_add(&r->unsent, piece.p + n, piece.len - (size_t)n);
    if (r->unsent.err) {
        run_fail(r, 503);
        return false;
    }
    await_room(r);
    return r->phase != OVER;
}

static void take_piece(struct mk_request *req, struct mk_str piece, bool end, void *ctx)
{
    struct run *r = ctx;
    r->body_ended |= end;
    if (r->in.fd < 0)
        return;
    if (piece.len && !send_piece(r, piece))
        return;
    if (r->in.fd >= 0 && r->unsent.len && !end) {
        r->is_paused = true;
        mk_request_pause(req);
    }
    if (end && !r->unsent.len)
        close_input(r);
    run_touch(r);
}

static void flush_unsent(struct run *r)
{
    ssize_t n = write_input(r, mk_buf_str(&r->unsent));
    if (n < 0) {
        close_input(r);
        return;
    }
    mk_buf_drop(&r->unsent, (size_t)n);
    if (r->unsent.len)
        return;
    run_watch(r, &r->in, &r->in_is_watched, 0);
    if (r->body_ended) {
        close_input(r);
    } else if (r->is_paused) {
        r->is_paused = false;
        mk_request_resume(r->req);
    }
}

/* ── as a whole ── */

static void fail_received(struct run *r, int err)
{
    r->has_failed = true;
    if (err != -EFBIG)
        mk_request_log(r->req, MK_LOG_ERROR, "cgi: the body of a request cannot be kept: %s", strerror(-err));
    run_fail(r, err == -EFBIG ? 413 : 503);
}

/* Writes what the pipe takes of a body that was received. */
static void send_received(struct run *r)
{
    struct mk_str piece;
    ssize_t n, written = 1;
    while (r->in.fd >= 0 && r->received.spool && written > 0) {
        n = mk_spool_peek(r->received.spool, &piece);
        if (n == -EAGAIN) {
            run_watch(r, &r->in, &r->in_is_watched, 0); /* until it was read */
            return;
        }
        if (n < 0) {
            fail_received(r, (int)n);
            return;
        }
        written = n ? write_input(r, piece) : 0;
        if (n == 0 || written < 0) {
            close_input(r);
            return;
        }
        mk_spool_skip(r->received.spool, (size_t)written);
    }
    if (r->in.fd >= 0 && written == 0)
        await_room(r);
}

static void on_input(struct mk_event *event, uint32_t events)
{
    struct run *r = MK_CONTAINER_OF(event, struct run, in);
    (void)events;
    if (r->is_received)
        send_received(r);
    else
        flush_unsent(r);
    if (r->phase != OVER)
        run_touch(r);
}

/* The body is there once it can be read: a part may still be on its way to the file. */
static void complete_input(struct run *r)
{
    struct mk_str piece;
    ssize_t n = mk_spool_peek(r->received.spool, &piece);
    if (n == -EAGAIN)
        return;
    if (n < 0) {
        fail_received(r, (int)n);
        return;
    }
    r->is_received = true;
    r->params.has_length = true;
    r->params.length = mk_spool_length(r->received.spool);
    r->has_body = r->params.length > 0;
    run_enter(r);
}

static void on_spool(struct mk_spool *spool, unsigned what, void *ctx)
{
    struct run *r = ctx;
    if (!r->received.spool || r->has_failed)
        return;
    if (r->is_received) {
        send_received(r);
        return;
    }
    if (what & MK_SPOOL_READABLE) {
        complete_input(r);
        return;
    }
    int err = mk_spool_room(spool);
    if (err < 0)
        fail_received(r, err);
    else
        mk_request_resume(r->req);
}

static void receive_piece(struct mk_request *req, struct mk_str piece, bool end, void *ctx)
{
    struct run *r = ctx;
    if (r->has_failed || !r->received.spool)
        return;
    uint64_t bytes_max = r->conf->spool_request_bytes ? r->conf->spool_request_bytes : UINT64_MAX;
    int err = mk_spool_add(r->received.spool, piece, bytes_max);
    if (err >= 0 && end)
        err = mk_spool_end(r->received.spool);
    r->body_ended |= end;
    if (err < 0)
        fail_received(r, err);
    else if (end)
        complete_input(r);
    else if (err == MK_AGAIN)
        mk_request_pause(req);
}

bool run_input_needs_receiving(const struct run *r)
{
    uint64_t bytes = 0;
    bool has_length = mk_request_body_length(r->req, &bytes);
    return !has_length || (bytes && r->conf->spool_request_bytes);
}

void run_input_receive(struct run *r)
{
    const struct mk_gateway_buffer sizes = {.memory_bytes = MK_SPOOL_MEMORY_MIN, .file_bytes = UINT64_MAX};
    uint64_t bytes = 0;
    r->phase = RECEIVING;
    bool has_length = mk_request_body_length(r->req, &bytes);
    if (has_length && bytes > r->conf->spool_request_bytes) {
        fail_received(r, -EFBIG);
        return;
    }
    int err = run_open_spool(r, &r->received, &sizes, true, on_spool);
    if (err < 0)
        fail_received(r, err);
    else
        mk_request_read(r->req, receive_piece, r);
}

/* ── the beginning ── */

void run_input_begin(struct run *r)
{
    mk_buf_init(&r->unsent, UNSENT_BYTES_MAX);
    if (r->in.fd < 0)
        return;
    if (r->is_received)
        send_received(r);
    else
        mk_request_read(r->req, take_piece, r);
}

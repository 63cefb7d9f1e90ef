// SPDX-License-Identifier: Apache-2.0
/*
 * The turns of an HTTP/2 connection (http/h2/h2.h): reads input, chooses the stream whose DATA is sent next, and finds
 * the connection's state at the end of a turn. nghttp2 may read only the chosen stream, so that it makes no choice
 * itself.
 */
#include "http/h2/h2.h"

#include "http/h2/response.h"
#include "http/h2/core.h"
#include "http/h2/evict.h"
#include "http/tunnel.h"
#include "loop/loop.h"

#include <assert.h>
#include <errno.h>

enum {
    BATCH_BYTES_MIN = MK__H2_FRAME_BYTES,
    TURN_READ_BYTES = 64 * 1024, /* read from one connection per turn */
    TURN_SENT_BYTES = 256 * 1024,
};

/* ── the output ── */

static int flush_out(struct mk__h2 *h2, unsigned flags)
{
    struct mk__conn *c = h2->conn;
    struct mk__scratch *out = &mk__h2_shared_of(h2)->out;
    bool full = out->len >= h2->batch;
    h2->ahead.bytes = 0; /* it moves with the output's beginning */
    int r = mk__sock_flush(&c->sock, out, c->http->account, flags);
    if (r == MK_AGAIN)
        h2->batch = BATCH_BYTES_MIN;
    else if (full && h2->batch < MK__H2_OUT_BYTES - MK__H2_FRAME_BYTES)
        h2->batch *= 2;
    return r;
}

static bool may_send(struct mk__h2_priority *priority, void *ctx)
{
    (void)ctx;
    struct mk__h2_stream *s = MK_CONTAINER_OF(priority, struct mk__h2_stream, priority);
    return mk__h2_remote_window(s->h2, s->id) > 0 || s->req->bodyless;
}

/* Returns whether a stream that nghttp2 would send may send now. */
static bool may_send_now(struct mk__h2 *h2, struct mk__h2_stream *s)
{
    if (!s->req)
        return false;
    mk__h2_scheduler_add(&h2->scheduler, &s->priority);
    if (!h2->current && mk__h2_scheduler_pick(&h2->scheduler, may_send, NULL) == &s->priority)
        h2->current = s;
    if (h2->current != s)
        return false;
    if (h2->sent < TURN_SENT_BYTES)
        return true;
    h2->turn_again = true;
    h2->current = NULL;
    return false;
}

/* Returns how many bytes of a file come next and have room in the client's windows, if that is more than one frame. */
static size_t count_bytes_ahead(const struct mk__h2 *h2, const struct mk__h2_stream *s)
{
    uint64_t bytes = s->priority.incremental ? 0 : mk__h2_response_file_bytes(s);
    if (bytes <= MK__H2_FRAME_BYTES)
        return 0;
    int32_t window = mk__h2_remote_window(h2, s->id), all = mk__h2_remote_window(h2, 0);
    window = window < all ? window : all;
    return window <= MK__H2_FRAME_BYTES ? 0 : bytes < (uint32_t)window ? (size_t)bytes : (size_t)window;
}

/* Returns whether another frame may begin at this offset of the output, behind `n` others of this turn. */
static bool has_room_ahead(const struct mk__h2 *h2, size_t at, size_t n)
{
    return at < h2->batch && MK__H2_OUT_BYTES - at >= MK__H2_FRAME_HEAD_BYTES + MK__H2_FRAME_BYTES &&
           h2->sent + n * MK__H2_FRAME_BYTES < TURN_SENT_BYTES;
}

/* Reads the payloads of all frames of a file that fit into this write, each to where its frame will be. */
static void read_ahead(struct mk__h2 *h2, struct mk__h2_stream *s)
{
    const struct mk__scratch *out = &mk__h2_shared_of(h2)->out;
    struct iovec payloads[MK__H2_OUT_FRAMES];
    size_t left = count_bytes_ahead(h2, s), at = out->len;
    size_t n = 0;
    for (; left && has_room_ahead(h2, at, n); n++) {
        size_t len = left < MK__H2_FRAME_BYTES ? left : MK__H2_FRAME_BYTES;
        payloads[n] = (struct iovec){out->data + at + MK__H2_FRAME_HEAD_BYTES, len};
        at += MK__H2_FRAME_HEAD_BYTES + len;
        left -= len;
    }
    h2->ahead = (struct mk__h2_ahead){.stream = s, .at = out->len + MK__H2_FRAME_HEAD_BYTES};
    if (n > 1)
        h2->ahead.bytes = mk__h2_response_peek(s, payloads, (int)n);
}

/* Reads the payload of the next frame behind the room for its header. Results as mk__h2_response_read(). */
static ssize_t read_payload(struct mk__h2 *h2, struct mk__h2_stream *s, size_t size, bool *ret_end)
{
    const struct mk__scratch *out = &mk__h2_shared_of(h2)->out;
    struct mk__h2_ahead *ahead = &h2->ahead;
    size_t at = out->len + MK__H2_FRAME_HEAD_BYTES;
    if (!ahead->bytes || ahead->stream != s || ahead->at != at)
        read_ahead(h2, s);
    if (!ahead->bytes)
        return mk__h2_response_read(s, out->data + at, size, ret_end);
    if (size > ahead->bytes)
        size = ahead->bytes;
    ahead->at += size + MK__H2_FRAME_HEAD_BYTES;
    ahead->bytes = size == MK__H2_FRAME_BYTES ? ahead->bytes - size : 0;
    return mk__h2_response_skip(s, size, ret_end);
}

enum mk__h2_read_result mk__h2_send_read_body(struct mk__h2 *h2, struct mk__h2_stream *s, size_t size,
                                              size_t *ret_bytes)
{
    struct mk__scratch *out = &mk__h2_shared_of(h2)->out;
    bool is_end;
    mk__h2_timeout_note(s);
    if (!may_send_now(h2, s)) {
        s->deferred = true;
        return MK__H2_READ_DEFERRED;
    }
    assert(h2->current == s && s->req);
    h2->data_requested = true;
    if (size > MK__H2_FRAME_BYTES)
        size = MK__H2_FRAME_BYTES;
    if (out->len >= h2->batch || out->size - out->len < MK__H2_FRAME_HEAD_BYTES + size) {
        h2->out_full = true;
        return MK__H2_READ_FULL;
    }
    ssize_t n = read_payload(h2, s, size, &is_end);
    if (n < 0 && n != -EBUSY) {
        s->reset = true;
        return MK__H2_READ_FAILED;
    }
    if (n <= 0 && !is_end) {
        mk__h2_scheduler_remove(&s->priority); /* until it is woken again */
        if (n == -EBUSY)
            s->req->ops->wake(s->req);
        s->deferred = true;
        h2->current = NULL;
        return MK__H2_READ_DEFERRED;
    }
    assert(n >= 0 && (size_t)n <= size);
    h2->frame_at = (uint32_t)out->len;
    h2->sent += (uint32_t)n;
    h2->conn->stream_bytes += (uint32_t)n;
    *ret_bytes = (size_t)n;
    if (is_end)
        mk__h2_scheduler_remove(&s->priority);
    else
        mk__h2_scheduler_rotate(&h2->scheduler, &s->priority);
    if (is_end || s->priority.incremental)
        h2->current = NULL;
    return is_end ? MK__H2_READ_LAST : MK__H2_READ_MORE;
}

void mk__h2_send_put_frame_head(struct mk__h2 *h2, const void *head, size_t bytes)
{
    struct mk__scratch *out = &mk__h2_shared_of(h2)->out;
    assert(h2->frame_at == out->len && bytes <= out->size - out->len - MK__H2_FRAME_HEAD_BYTES);
    memcpy(out->data + h2->frame_at, head, MK__H2_FRAME_HEAD_BYTES);
    out->len = h2->frame_at + MK__H2_FRAME_HEAD_BYTES + bytes;
}

/* Chooses the next stream to send. Returns false if there is none. */
static bool choose_stream(struct mk__h2 *h2)
{
    if (h2->sent >= TURN_SENT_BYTES) {
        h2->turn_again |= mk__h2_scheduler_pick(&h2->scheduler, may_send, NULL) != NULL;
        return false;
    }
    if (mk__h2_remote_window(h2, 0) <= 0)
        return false;
    struct mk__h2_priority *priority = mk__h2_scheduler_pick(&h2->scheduler, may_send, NULL);
    if (!priority)
        return false;
    h2->current = MK_CONTAINER_OF(priority, struct mk__h2_stream, priority);
    h2->data_requested = false;
    if (h2->current->deferred)
        mk__h2_resume_data(h2->current);
    h2->current->deferred = false;
    return true;
}

/* nghttp2 cannot send the chosen stream, because of a window or its state. */
static void skip_stream(struct mk__h2_stream *s)
{
    mk__h2_scheduler_remove(&s->priority);
    mk__h2_timeout_note(s);
}

/* Appends a frame; flushes the output first if bodies have filled it. Returns 0, MK_AGAIN or -errno. */
static int put_frame(struct mk__h2 *h2, struct mk_str frame)
{
    struct mk__scratch *out = &mk__h2_shared_of(h2)->out;
    int r = frame.len > out->size - out->len ? flush_out(h2, MK_IO_MORE) : 0;
    if (r < 0 || frame.len > out->size - out->len)
        return r < 0 ? r : -EMSGSIZE;
    memcpy(out->data + out->len, frame.p, frame.len);
    out->len += frame.len;
    return r == MK_AGAIN ? flush_out(h2, 0) : 0;
}

/* Writes frames to the output until there are no more. Returns 0, MK_AGAIN (the socket is full) or -errno. */
static int produce_frames(struct mk__h2 *h2)
{
    struct mk__scratch *out = &mk__h2_shared_of(h2)->out;
    for (;;) {
        struct mk_str frame;
        if (out->len >= h2->batch || out->size - out->len < MK__H2_FRAME_BYTES + MK__H2_FRAME_HEAD_BYTES) {
            int r = flush_out(h2, 0); /* only nghttp2 knows whether there are more frames */
            if (r != 0)
                return r;
        }
        h2->out_full = false;
        int r = mk__h2_next_frame(h2, &frame);
        if (r == 0 && frame.len)
            r = put_frame(h2, frame);
        if (r != 0)
            return r;
        if (frame.len)
            continue;
        if (h2->out_full)
            continue;
        if (h2->current && !h2->data_requested)
            skip_stream(h2->current);
        h2->current = NULL;
        if (!choose_stream(h2))
            return 0;
    }
}

/* What an error leaves in the output, which all connections of the thread use, is not sent. */
static int send_frames(struct mk__h2 *h2)
{
    struct mk__scratch *out = &mk__h2_shared_of(h2)->out;
    assert(out->len == 0);
    h2->sent = 0;
    int r = flush_out(h2, 0);
    if (r == 0)
        r = produce_frames(h2);
    h2->current = NULL;
    if (r < 0)
        out->len = 0;
    return r == 0 ? flush_out(h2, 0) : r;
}

/* ── turns ── */

/* Reads the input. Returns false if the connection is unusable. */
static bool receive_input(struct mk__h2 *h2)
{
    struct mk__conn *c = h2->conn;
    struct mk__scratch *in = &c->http->in;
    for (size_t read = 0; c->sock.readable && !mk__sock_has_ended(&c->sock) && !mk__h2_is_terminated(h2);) {
        if (read >= TURN_READ_BYTES) {
            h2->turn_again = true;
            break;
        }
        mk__conn_note_read(c);
        ssize_t n = mk__sock_read(&c->sock, in->data, in->size);
        if (n == -EAGAIN || n == 0)
            break;
        if (n < 0)
            return false;
        mk__h2_receive(h2, mk_str(in->data, (size_t)n));
        read += (size_t)n;
    }
    return true;
}

static void step_streams(struct mk__h2 *h2)
{
    struct mk_list now;
    mk_list_init(&now);
    mk_list_join(&now, &h2->woken);
    while (!mk_list_empty(&now))
        mk__h2_stream_step(MK_LIST_FIRST(&now, struct mk__h2_stream, woken));
}

static bool has_streams(const struct mk__h2 *h2)
{
    return !mk_list_empty(&h2->streams);
}

/* Returns whether all requests were answered and none is being received. */
static bool is_idle(const struct mk__h2 *h2)
{
    return !has_streams(h2) && !h2->head_stream && h2->conn->requests;
}

/*
 * Returns whether an idle connection gets the grace period after the shutdown notice: it must answer the PING in it,
 * whatever else it sends. Only in a drain or when a handler wants to close. A connection that was accepted during a
 * drain may still send a request.
 */
static bool can_close_idle(const struct mk__h2 *h2)
{
    const struct mk__conn *c = h2->conn;
    bool urgent = h2->close_requested || mk__h2_http(h2)->shutdown == MK__SHUTDOWN_DRAINING;
    return urgent && h2->shutdown == MK__H2_SHUTDOWN_NOTICE && !has_streams(h2) && !h2->head_stream &&
           !mk__conn_awaits_request_in_drain(c);
}

static enum mk__conn_state find_conn_state(const struct mk__h2 *h2, int sent)
{
    if (sent == MK_AGAIN)
        return MK__CONN_STREAMS_WRITE;
    if (h2->head_stream)
        return MK__CONN_READ_HEAD;
    if (has_streams(h2))
        return MK__CONN_STREAMS;
    return h2->conn->requests ? MK__CONN_IDLE : MK__CONN_NEW;
}

/* Closes the connection. While it lingers nothing is read, so the session, which uses much memory, is freed now. */
static enum mk__conn_state close_session(struct mk__conn *c)
{
    mk__conn_close_after(c, MK__CLOSE_UNREAD_INPUT);
    enum mk__conn_state next = mk__conn_begin_close(c);
    if (next == MK__CONN_LINGER)
        mk__h2_close(c);
    return next == MK__CONN_WRITE ? MK__CONN_STREAMS_WRITE : next;
}

static enum mk__conn_state end_turn(struct mk__h2 *h2, int sent)
{
    struct mk__conn *c = h2->conn;
    bool wants = mk__h2_wants_io(h2);
    if (sent < 0)
        return MK__CONN_CLOSED;
    bool gone =
        mk__sock_has_ended(&c->sock) && !h2->turn_again; /* a client that has closed its side still gets the output */
    if (sent == 0 && (!wants || mk__h2_is_terminated(h2) || gone))
        return close_session(c);
    if (sent != 0 && mk__h2_is_terminated(h2) && h2->grace == MK__H2_GRACE_OVER && !c->requests)
        return MK__CONN_CLOSED; /* it reads nothing and has sent no request */
    if (can_close_idle(h2) && h2->grace == MK__H2_GRACE_NONE) {
        h2->grace = MK__H2_GRACE_RUNNING;
        mk_timer_arm(c->http->loop, &h2->grace_timer, MK__CONN_DRAIN_GRACE_MS);
    }
    h2->turn_again |= h2->grace == MK__H2_GRACE_OVER && can_close_idle(h2);
    mk__h2_timeout_update(h2);
    if (h2->turn_again || !mk_list_empty(&h2->woken) ||
        (c->sock.readable && !mk__sock_has_ended(&c->sock) && sent == 0))
        mk_task_schedule(c->http->loop, &c->task);
    return find_conn_state(h2, sent);
}

/* Tells the handlers of tunnels, which may never end, of the drain. */
static void notify_tunnels(struct mk__h2 *h2)
{
    struct mk_list *n, *save;
    MK_LIST_EACH(&h2->streams, n, save) {
        struct mk__h2_stream *s = MK_CONTAINER_OF(n, struct mk__h2_stream, link);
        if (s->req && s->req->tunnel && !s->req->tunnel->shutdown_notified)
            s->req->ops->wake(s->req);
    }
}

static void begin_shutdown(struct mk__h2 *h2)
{
    const struct mk__context *http = mk__h2_http(h2);
    bool stays = h2->shutdown == MK__H2_SHUTDOWN_NONE;
    if (mk__context_ends_conns(http))
        notify_tunnels(h2);
    if (!mk__context_keeps_alive(http) || http->settings_version != h2->settings_version)
        mk__h2_submit_shutdown_notice(h2);
    if (is_idle(h2) && http->shutdown == MK__SHUTDOWN_DRAINING && stays)
        mk__h2_submit_goaway(h2);
    if (h2->grace == MK__H2_GRACE_OVER && can_close_idle(h2))
        mk__h2_terminate(h2, MK__H2_ERR_NO_ERROR);
}

void mk__h2_send_on_grace_timer(struct mk_timer *timer)
{
    struct mk__h2 *h2 = MK_CONTAINER_OF(timer, struct mk__h2, grace_timer);
    h2->grace = MK__H2_GRACE_OVER;
    mk_task_schedule(mk__h2_http(h2)->loop, &h2->conn->task);
}

static enum mk__conn_state run_turn(struct mk__conn *c, struct mk_str in)
{
    struct mk__h2 *h2 = c->proto_data;
    assert(h2 && h2->conn == c && !h2->current);
    h2->turn_again = false;
    if (in.len)
        mk__h2_receive(h2, in);
    if (!receive_input(h2))
        return MK__CONN_CLOSED;
    begin_shutdown(h2);
    step_streams(h2);
    int sent = send_frames(h2);
    if (sent == 0 && is_idle(h2) && mk__context_is_low_on_memory(c->http)) {
        mk__h2_submit_goaway(h2);
        sent = send_frames(h2);
    }
    return end_turn(h2, sent);
}

static enum mk__conn_state on_ready(struct mk__conn *c)
{
    return run_turn(c, MK_STR_NONE);
}

/* The client reads nothing: logs the streams that are aborted with the connection before their own timeouts. */
static void log_send_timeouts(struct mk__conn *c)
{
    struct mk__h2 *h2 = c->proto_data;
    struct mk_list *n, *save;
    if (!h2) /* the connection lingers */
        return;
    MK_LIST_EACH(&h2->streams, n, save) {
        const struct mk__h2_stream *s = MK_CONTAINER_OF(n, struct mk__h2_stream, link);
        if (mk__h2_stream_states[s->state].waits_for_window && s->req && s->req->response_state != MK__RESPONSE_FAILED)
            mk__h2_flood_log(h2, MK__H2_FLOOD_SEND_TIMEOUT, s->req->limits->timeout_ms[MK__TIMEOUT_SEND]);
    }
}

static enum mk__conn_state on_timeout(struct mk__conn *c)
{
    struct mk__h2 *h2 = c->proto_data;
    mk__h2_terminate(h2, MK__H2_ERR_NO_ERROR);
    return end_turn(h2, send_frames(h2));
}

static enum mk__conn_state begin_session(struct mk__conn *c, struct mk_str in)
{
    return mk__h2_open(c) < 0 ? MK__CONN_CLOSED : run_turn(c, in);
}

/* Clients are notified by a GOAWAY frame. */
static bool announces(const struct mk__conn *c, enum mk__conn_change change)
{
    (void)change;
    return c->state != MK__CONN_LINGER;
}

const struct mk__proto mk__h2_proto = {
    .begin = begin_session,
    .on_ready = on_ready,
    .on_timeout = on_timeout,
    .on_abort = log_send_timeouts,
    .announces = announces,
    .close = mk__h2_close,
    .evict = mk__h2_evict_find,
    .close_idle = mk__h2_evict_close_idle,
    .log_totals = mk__h2_flood_log_totals,
    .release = mk__h2_release_shared,
};

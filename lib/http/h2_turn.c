// SPDX-License-Identifier: Apache-2.0
/*
 * The turns of a connection that speaks HTTP/2 (http/h2.h): what is read, which stream's DATA leaves next, and at which
 * wait a turn ends. Only the stream whose turn it is may be read, so that nghttp2 has nothing to choose from.
 */
#include "http/h2.h"

#include "http/h2_answer.h"
#include "http/h2_core.h"
#include "http/h2_hoard.h"
#include "loop/loop.h"

#include <errno.h>

enum {
    BATCH_BYTES_MIN = MK__H2_FRAME_BYTES,
    TURN_READ_BYTES = 64 * 1024, /* of one connection, then others have their turn */
    TURN_SENT_BYTES = 256 * 1024,
};

/* ── the output ── */

static int flush(struct mk__h2 *h2, unsigned flags)
{
    struct mk__conn *c = h2->conn;
    struct mk__scratch *out = &mk__h2_shared_of(h2)->out;
    bool full = out->len >= h2->batch;
    int r = mk__stream_flush(&c->sock, out, c->http->account, flags);
    if (r == MK_AGAIN)
        h2->batch = BATCH_BYTES_MIN;
    else if (full && h2->batch < MK__H2_OUT_BYTES - MK__H2_FRAME_BYTES)
        h2->batch *= 2;
    return r;
}

static bool may_send(struct mk__h2_place *place, void *ctx)
{
    (void)ctx;
    struct mk__h2_stream *s = MK_OWNER(place, struct mk__h2_stream, place);
    return mk__h2_window(s->h2, s->id) > 0 || s->req->bodyless;
}

/* nghttp2 would send of this one: is it its turn? */
static bool may_read(struct mk__h2 *h2, struct mk__h2_stream *s)
{
    if (!s->req)
        return false;
    mk__h2_order_add(&h2->order, &s->place);
    if (!h2->current && mk__h2_order_pick(&h2->order, may_send, NULL) == &s->place)
        h2->current = s;
    if (h2->current != s)
        return false;
    if (h2->sent < TURN_SENT_BYTES)
        return true;
    h2->later = true;
    h2->current = NULL;
    return false;
}

enum mk__h2_reading mk__h2_turn_read(struct mk__h2 *h2, struct mk__h2_stream *s, size_t size, size_t *ret_bytes)
{
    struct mk__scratch *out = &mk__h2_shared_of(h2)->out;
    bool is_end;
    if (!may_read(h2, s)) {
        s->parked = true;
        return MK__H2_LATER;
    }
    h2->asked = true;
    if (size > MK__H2_FRAME_BYTES)
        size = MK__H2_FRAME_BYTES;
    if (out->size - out->len < MK__H2_FRAME_HEAD_BYTES + size) {
        h2->paused = true;
        return MK__H2_FULL;
    }
    ssize_t n = mk__h2_answer_read(s, out->data + out->len + MK__H2_FRAME_HEAD_BYTES, size, &is_end);
    if (n < 0 && n != -EBUSY) {
        s->reset = true;
        return MK__H2_FAILED;
    }
    if (n <= 0 && !is_end) {
        mk__h2_order_remove(&s->place); /* until it is woken */
        if (n == -EBUSY)
            s->req->protocol->wake(s->req);
        s->parked = true;
        h2->current = NULL;
        return MK__H2_LATER;
    }
    h2->frame_at = (uint32_t)out->len;
    h2->sent += (uint32_t)n;
    h2->conn->stream_bytes += (uint32_t)n;
    *ret_bytes = (size_t)n;
    if (is_end)
        mk__h2_order_remove(&s->place);
    else
        mk__h2_order_rotate(&h2->order, &s->place);
    if (is_end || s->place.incremental)
        h2->current = NULL;
    return is_end ? MK__H2_LAST : MK__H2_MORE;
}

void mk__h2_turn_frame(struct mk__h2 *h2, const void *head, size_t bytes)
{
    struct mk__scratch *out = &mk__h2_shared_of(h2)->out;
    memcpy(out->data + h2->frame_at, head, MK__H2_FRAME_HEAD_BYTES);
    out->len = h2->frame_at + MK__H2_FRAME_HEAD_BYTES + bytes;
}

/* Lets the next stream send; false: there is none that could. */
static bool choose(struct mk__h2 *h2)
{
    if (h2->sent >= TURN_SENT_BYTES) {
        h2->later |= mk__h2_order_pick(&h2->order, may_send, NULL) != NULL;
        return false;
    }
    if (mk__h2_window(h2, 0) <= 0)
        return false;
    struct mk__h2_place *place = mk__h2_order_pick(&h2->order, may_send, NULL);
    if (!place)
        return false;
    h2->current = MK_OWNER(place, struct mk__h2_stream, place);
    h2->asked = false;
    if (h2->current->parked)
        mk__h2_resume(h2->current);
    h2->current->parked = false;
    return true;
}

/* Bodies may have filled the output in the meantime. */
static int put_frame(struct mk__h2 *h2, struct mk_str frame)
{
    struct mk__scratch *out = &mk__h2_shared_of(h2)->out;
    int r = frame.len > out->size - out->len ? flush(h2, MK_IO_MORE) : 0;
    if (r < 0 || frame.len > out->size - out->len)
        return r < 0 ? r : -EMSGSIZE;
    memcpy(out->data + out->len, frame.p, frame.len);
    out->len += frame.len;
    return r == MK_AGAIN ? flush(h2, 0) : 0;
}

/* Frames into the output: 0, when there are no more; MK_AGAIN when the client takes none; -errno. */
static int produce(struct mk__h2 *h2)
{
    struct mk__scratch *out = &mk__h2_shared_of(h2)->out;
    for (;;) {
        struct mk_str frame;
        if (out->len >= h2->batch || out->size - out->len < MK__H2_FRAME_BYTES + MK__H2_FRAME_HEAD_BYTES) {
            int r = flush(h2, 0); /* whether there is more shows only now */
            if (r != 0)
                return r;
        }
        h2->paused = false;
        int r = mk__h2_pull(h2, &frame);
        if (r == 0 && frame.len)
            r = put_frame(h2, frame);
        if (r != 0)
            return r;
        if (frame.len)
            continue;
        if (h2->paused)
            continue;
        if (h2->current && !h2->asked) /* nghttp2 knows better: its windows, or its state */
            mk__h2_order_remove(&h2->current->place);
        h2->current = NULL;
        if (!choose(h2))
            return 0;
    }
}

static int send_all(struct mk__h2 *h2)
{
    h2->sent = 0;
    int r = flush(h2, 0);
    if (r == 0)
        r = produce(h2);
    h2->current = NULL;
    return r == 0 ? flush(h2, 0) : r;
}

/* ── turns ── */

/* Reads what there is; false when the connection is of no use any more. */
static bool receive_all(struct mk__h2 *h2)
{
    struct mk__conn *c = h2->conn;
    struct mk__scratch *in = &c->http->in;
    for (size_t read = 0; c->sock.readable && !c->sock.ended && !h2->ended;) {
        if (read >= TURN_READ_BYTES) {
            h2->later = true;
            break;
        }
        ssize_t n = mk__stream_read(&c->sock, in->data, in->size);
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

static void settle_streams(struct mk__h2 *h2)
{
    struct mk_list *n, *save;
    MK_LIST_EACH(&h2->streams, n, save)
        mk__h2_wait_settle(MK_OWNER(n, struct mk__h2_stream, link));
}

static bool has_work(const struct mk__h2 *h2)
{
    return !mk_list_empty(&h2->streams);
}

/* It has had its answers, and nothing is on its way. */
static bool is_idle(const struct mk__h2 *h2)
{
    return !has_work(h2) && !h2->head_of && h2->conn->requests;
}

/*
 * It has been warned, and nothing is on its way, as far as we can see: it has a moment to answer our PING, whatever
 * else it sends, where it is urgent. Who came during the drain, which does not wait for it, may still ask.
 */
static bool overstays(const struct mk__h2 *h2)
{
    const struct mk__conn *c = h2->conn;
    bool urgent = h2->dismissed || mk__h2_http(h2)->draining;
    return urgent && h2->going == MK__H2_WARNED && !has_work(h2) && !h2->head_of &&
           (c->requests || !c->accepted_in_drain);
}

static enum mk__conn_state state_of(const struct mk__h2 *h2, int sent)
{
    if (sent == MK_AGAIN)
        return MK__CONN_H2_WRITE;
    if (h2->head_of)
        return MK__CONN_READ_HEAD;
    if (has_work(h2))
        return MK__CONN_STREAMS;
    return h2->conn->requests ? MK__CONN_IDLE : MK__CONN_NEW;
}

/* A client may take its time to leave, but nothing is heard any more, and its session holds a lot. */
static enum mk__conn_state leave(struct mk__conn *c)
{
    c->closing = c->unread_input = true;
    enum mk__conn_state next = mk__conn_begin_close(c);
    if (next == MK__CONN_LINGER)
        mk__h2_close(c);
    return next == MK__CONN_WRITE ? MK__CONN_H2_WRITE : next;
}

static enum mk__conn_state settle(struct mk__h2 *h2, int sent)
{
    struct mk__conn *c = h2->conn;
    bool wants = mk__h2_wants(h2);
    if (sent < 0)
        return MK__CONN_CLOSED;
    bool gone = c->sock.ended && !h2->later; /* who sends no more takes what is there */
    if (sent == 0 && (!wants || h2->ended || gone))
        return leave(c);
    if (sent != 0 && h2->ended && h2->overdue && !c->requests)
        return MK__CONN_CLOSED; /* it does not take a word of ours, nor has it asked for any */
    if (overstays(h2) && !h2->moment.deadline_ms)
        mk_timer_arm(c->http->loop, &h2->moment, MK__CONN_DRAIN_GRACE_MS);
    h2->later |= h2->overdue && overstays(h2) && !h2->ended;
    settle_streams(h2);
    if (h2->later || !mk_list_empty(&h2->woken) || (c->sock.readable && !c->sock.ended && sent == 0))
        mk_task_schedule(c->http->loop, &c->task);
    return state_of(h2, sent);
}

/* Streams that were taken over have no end of their own. */
static void tell_tunnels(struct mk__h2 *h2)
{
    struct mk_list *n, *save;
    MK_LIST_EACH(&h2->streams, n, save) {
        struct mk__h2_stream *s = MK_OWNER(n, struct mk__h2_stream, link);
        if (s->req && s->req->tunnel && !s->told_draining)
            s->req->protocol->wake(s->req);
    }
}

static void prepare_farewell(struct mk__h2 *h2)
{
    const struct mk__context *http = mk__h2_http(h2);
    bool stays = h2->going == MK__H2_STAYS;
    if (http->draining || http->retiring)
        tell_tunnels(h2);
    if (http->draining || http->retiring || !http->settings->keep_alive || http->settings_version != h2->adoptions)
        mk__h2_warn(h2);
    if (is_idle(h2) && http->draining && stays)
        mk__h2_say_goodbye(h2);
    if (h2->overdue && overstays(h2))
        mk__h2_end(h2, MK__H2_NO_ERROR);
}

void mk__h2_turn_moment(struct mk_timer *timer)
{
    struct mk__h2 *h2 = MK_OWNER(timer, struct mk__h2, moment);
    h2->overdue = true;
    mk_task_schedule(mk__h2_http(h2)->loop, &h2->conn->task);
}

static enum mk__conn_state take_turn(struct mk__conn *c, struct mk_str in)
{
    struct mk__h2 *h2 = c->h2;
    h2->later = false;
    if (in.len)
        mk__h2_receive(h2, in);
    if (!receive_all(h2))
        return MK__CONN_CLOSED;
    prepare_farewell(h2);
    step_streams(h2);
    int sent = send_all(h2);
    if (sent == 0 && is_idle(h2) && mk__context_is_low_on_memory(c->http)) {
        mk__h2_say_goodbye(h2);
        sent = send_all(h2);
    }
    return settle(h2, sent);
}

/* Nothing at all is taken: those that have not been told of, by their own timers, are ended with their connection. */
static void tell_unread(struct mk__h2 *h2)
{
    struct mk_list *n, *save;
    MK_LIST_EACH(&h2->streams, n, save) {
        const struct mk__h2_stream *s = MK_OWNER(n, struct mk__h2_stream, link);
        if (s->wait == MK__H2_SEND && s->req && !s->req->failed)
            mk__h2_manners_tell(h2, MK__H2_UNREAD, s->req->limits->timeout_ms[MK__TIMEOUT_SEND]);
    }
}

static enum mk__conn_state overdue(struct mk__conn *c)
{
    struct mk__h2 *h2 = c->h2;
    if (c->state == MK__CONN_H2_WRITE) {
        tell_unread(h2);
        return MK__CONN_CLOSED;
    }
    mk__h2_end(h2, MK__H2_NO_ERROR);
    return settle(h2, send_all(h2));
}

static enum mk__conn_state begin(struct mk__conn *c, struct mk_str in)
{
    return mk__h2_open(c) < 0 ? MK__CONN_CLOSED : take_turn(c, in);
}

const struct mk__h2_calls mk__h2_calls = {
    .begin = begin,
    .turn = take_turn,
    .overdue = overdue,
    .close = mk__h2_close,
    .hoarder = mk__h2_hoard_find,
    .give_up = mk__h2_hoard_give_up,
    .sum_up = mk__h2_manners_sum_up,
    .release = mk__h2_release,
};

// SPDX-License-Identifier: Apache-2.0
/*
 * The output of an HTTP/2 connection (http/h2/h2.h): control frames first, then heads, then DATA of the stream that the
 * scheduler chooses, all gathered in the buffer of the worker and written together.
 */
#include "http/h2/h2.h"

#include "http/request_extra.h"
#include "http/h2/alloc.h"
#include "http/h2/response.h"
#include "loop/loop.h"

#include <assert.h>
#include <errno.h>

enum {
    BATCH_BYTES_MIN = MK__H2_FRAME_BYTES,
    DATA_BYTES_MAX = MK__H2_FRAME_HEAD_BYTES + MK__H2_FRAME_BYTES,
    TURN_SENT_BYTES = 224 * 1024, /* and the rest of a write: two of the largest */
};

/* ── the buffer ── */

static struct mk__scratch *get_out(const struct mk__h2 *h2)
{
    return &h2->shared->out;
}

static int flush_out(struct mk__h2 *h2, unsigned flags)
{
    struct mk__conn *c = h2->conn;
    struct mk__scratch *out = get_out(h2);
    bool full = out->len >= h2->batch;
    h2->ahead.bytes = 0; /* it moves with the output's beginning */
    int r = mk__sock_flush(&c->sock, out, c->http->account, flags);
    if (r == MK_AGAIN)
        h2->batch = BATCH_BYTES_MIN;
    else if (full && h2->batch < MK__H2_OUT_BYTES - MK__H2_FRAME_BYTES)
        h2->batch *= 2;
    return r;
}

/* Returns whether a write is due before so many bytes are added. */
static bool is_full(const struct mk__h2 *h2, size_t bytes)
{
    const struct mk__scratch *out = get_out(h2);
    return out->len >= h2->batch || out->size - out->len < bytes;
}

/* Makes room for so many bytes by a write, also if a batch is full. `flags`: MK_IO_MORE or 0. Returns 0, MK_AGAIN (the
 * socket is full) or -errno. */
static int make_room(struct mk__h2 *h2, size_t bytes, unsigned flags)
{
    assert(bytes <= get_out(h2)->size);
    return is_full(h2, bytes) ? flush_out(h2, flags) : 0;
}

static int put_control(struct mk__h2 *h2)
{
    struct mk__scratch *out = get_out(h2);
    if (!h2->control.len)
        return 0;
    int r = make_room(h2, h2->control.len, MK_IO_MORE);
    if (r != 0)
        return r;
    memcpy(out->data + out->len, h2->control.p, h2->control.len);
    out->len += h2->control.len;
    mk__h2_alloc_release(h2, &h2->control);
    h2->acks = 0;
    return 0;
}

/* ── heads ── */

/* Returns how many bytes a block may take with the heads of its frames. */
static size_t count_block_room(const struct mk__h2_headers *fields)
{
    size_t bytes = MK__HPACK_RESIZE_BYTES_MAX + fields->bytes + fields->n * MK__HPACK_FIELD_OVERHEAD;
    return bytes + (bytes / MK__H2_FRAME_BYTES + 1) * MK__H2_FRAME_HEAD_BYTES;
}

/* Divides a block of which the first frame's payload is in place, so that each frame has its head. Returns the end. */
static char *divide_block(char *payload, size_t len, int32_t id)
{
    char *head = payload + MK__H2_FRAME_BYTES;
    for (size_t left = len - MK__H2_FRAME_BYTES; left;) {
        size_t n = left < MK__H2_FRAME_BYTES ? left : MK__H2_FRAME_BYTES;
        memmove(head + MK__H2_FRAME_HEAD_BYTES, head, left);
        left -= n;
        mk__h2_frame_put_head(head, n, MK__H2_FRAME_CONTINUATION, left ? 0 : MK__H2_FLAG_END_HEADERS, id);
        head += MK__H2_FRAME_HEAD_BYTES + n;
    }
    return head;
}

/* Encodes a block after the room for the head of its frame. Returns the length of its frames. */
static size_t put_block(struct mk__h2 *h2, int32_t id, const struct mk__h2_headers *fields, uint8_t flags)
{
    struct mk__scratch *out = get_out(h2);
    char *frame = out->data + out->len, *payload = frame + MK__H2_FRAME_HEAD_BYTES;
    char *end = mk__hpack_encode_begin(&h2->encoder, payload);
    end = mk__hpack_encode(&h2->encoder, end, fields->items, fields->n);
    size_t len = (size_t)(end - payload), first = len < MK__H2_FRAME_BYTES ? len : MK__H2_FRAME_BYTES;
    if (first < len)
        end = divide_block(payload, len, id);
    else
        flags |= MK__H2_FLAG_END_HEADERS;
    mk__h2_frame_put_head(frame, first, MK__H2_FRAME_HEADERS, flags, id);
    out->len += (size_t)(end - frame);
    assert(out->len <= out->size);
    return (size_t)(end - frame);
}

/* Fills `fields` with what the stream has to send next. Returns whether it ends the stream. */
static bool fill_fields(struct mk__h2_stream *s, struct mk__h2_headers *fields)
{
    const struct mk__interim *interim = mk__interim_first(s->req);
    if (s->trailers_due)
        return mk__h2_response_trailers(s, fields);
    if (interim)
        mk__h2_response_interim(interim, fields);
    else
        mk__h2_response_headers(s, fields);
    return !interim && !s->has_body;
}

/* A block was put into the output: it was the first interim response that waits, the head, or the trailers. */
static void note_block_sent(struct mk__h2_stream *s, size_t bytes)
{
    struct mk_request *req = s->req;
    if (s->trailers_due)
        s->trailers_due = false;
    else if (mk__interim_first(req))
        mk__interim_drop_first(req);
    else {
        req->head_bytes = (uint32_t)bytes;
        s->head_sent = true;
    }
    if (!mk__interim_first(req) && (s->head_sent || req->output_state < MK__OUTPUT_HEAD))
        mk_list_del(&s->heads);
}

/* Sends one block of a stream. Returns 0, MK_AGAIN (the socket is full) or -errno. */
static int put_head(struct mk__h2 *h2, struct mk__h2_stream *s)
{
    MK_UNINITIALIZED struct mk__h2_headers fields;
    bool ends = fill_fields(s, &fields);
    size_t room = count_block_room(&fields);
    mk__h2_timeout_note(s);
    if (room > MK__RESPONSE_HEAD_BYTES_MAX) { /* nothing could follow */
        mk__h2_control_reset_stream(s, MK__H2_ERR_INTERNAL);
        return 0;
    }
    int r = make_room(h2, room, MK_IO_MORE);
    if (r != 0)
        return r;
    note_block_sent(s, put_block(h2, s->node.id, &fields, ends ? MK__H2_FLAG_END_STREAM : 0));
    if (ends)
        mk__h2_stream_complete(s);
    return 0;
}

static int put_heads(struct mk__h2 *h2)
{
    int r = 0;
    while (r == 0 && !mk_list_empty(&h2->heads))
        r = put_head(h2, MK_LIST_FIRST(&h2->heads, struct mk__h2_stream, heads));
    return r;
}

/* ── DATA ── */

static int32_t get_window(const struct mk__h2_stream *s)
{
    return s->window < s->h2->window ? s->window : s->h2->window;
}

static bool may_send(struct mk__h2_priority *priority, void *ctx)
{
    const struct mk__h2_stream *s = MK_CONTAINER_OF(priority, struct mk__h2_stream, priority);
    (void)ctx;
    return get_window(s) > 0 || s->req->bodyless;
}

/* Chooses the next stream to send. Returns NULL if there is none, or enough was sent in this turn, by whole writes. */
static struct mk__h2_stream *choose_stream(struct mk__h2 *h2)
{
    struct mk__h2_priority *priority = mk__h2_scheduler_pick(&h2->scheduler, may_send, NULL);
    if (!priority)
        return NULL;
    bool ends = h2->sent >= TURN_SENT_BYTES && is_full(h2, DATA_BYTES_MAX);
    h2->turn_again |= ends;
    return ends ? NULL : MK_CONTAINER_OF(priority, struct mk__h2_stream, priority);
}

/* Returns how many bytes of a file come next and have room in the client's windows, if that is more than one frame. */
static size_t count_bytes_ahead(const struct mk__h2_stream *s)
{
    uint64_t bytes = s->priority.incremental ? 0 : mk__h2_response_file_bytes(s);
    int32_t window = get_window(s);
    if (bytes <= MK__H2_FRAME_BYTES || window <= MK__H2_FRAME_BYTES)
        return 0;
    return bytes < (uint32_t)window ? (size_t)bytes : (size_t)window;
}

/* Reads `left` bytes of a file, as far as their frames fit into this write, each payload to where its frame will be. */
static void read_ahead(struct mk__h2 *h2, struct mk__h2_stream *s, size_t left)
{
    const struct mk__scratch *out = get_out(h2);
    MK_UNINITIALIZED struct iovec payloads[MK__H2_OUT_FRAMES];
    size_t at = out->len, n = 0;
    /* another frame may begin at this offset */
    for (; left && at < h2->batch && MK__H2_OUT_BYTES - at >= DATA_BYTES_MAX; n++) {
        size_t len = left < MK__H2_FRAME_BYTES ? left : MK__H2_FRAME_BYTES;
        payloads[n] = (struct iovec){out->data + at + MK__H2_FRAME_HEAD_BYTES, len};
        at += MK__H2_FRAME_HEAD_BYTES + len;
        left -= len;
    }
    h2->ahead = (struct mk__h2_ahead){.stream = s, .at = out->len + MK__H2_FRAME_HEAD_BYTES};
    if (n > 1)
        h2->ahead.bytes = mk__h2_response_peek(s, payloads, (int)n);
}

/* Reads the payload of the next frame after the room for its header. Results as mk__h2_response_read(). */
static ssize_t read_payload(struct mk__h2 *h2, struct mk__h2_stream *s, size_t size, bool *ret_end)
{
    const struct mk__scratch *out = get_out(h2);
    struct mk__h2_ahead *ahead = &h2->ahead;
    size_t at = out->len + MK__H2_FRAME_HEAD_BYTES;
    if (!ahead->bytes || ahead->stream != s || ahead->at != at) {
        size_t left = count_bytes_ahead(s);
        ahead->bytes = 0;
        if (left)
            read_ahead(h2, s, left);
    }
    if (!ahead->bytes)
        return mk__h2_response_read(s, out->data + at, size, ret_end);
    if (size > ahead->bytes)
        size = ahead->bytes;
    ahead->at += size + MK__H2_FRAME_HEAD_BYTES;
    ahead->bytes = size == MK__H2_FRAME_BYTES ? ahead->bytes - size : 0;
    return mk__h2_response_skip(s, size, ret_end);
}

static void put_data_head(struct mk__h2 *h2, struct mk__h2_stream *s, size_t n, uint8_t flags)
{
    struct mk__scratch *out = get_out(h2);
    mk__h2_frame_put_head(out->data + out->len, n, MK__H2_FRAME_DATA, flags, s->node.id);
    out->len += MK__H2_FRAME_HEAD_BYTES + n;
    s->window -= (int32_t)n;
    h2->window -= (int32_t)n;
    h2->sent += (uint32_t)n;
    h2->conn->stream_bytes += n;
}

/* Returns whether there are trailers to send. Apart, because few responses have some. */
static MK_COLD bool has_trailers(const struct mk__h2_stream *s)
{
    MK_UNINITIALIZED struct mk__h2_headers fields;
    return mk__h2_response_trailers(s, &fields);
}

/* The body was read to its end. The trailers, if any, end the stream. */
static void end_body(struct mk__h2 *h2, struct mk__h2_stream *s, size_t n)
{
    mk__h2_scheduler_remove(&s->priority);
    s->trailers_due = s->req->trailers && has_trailers(s);
    if (s->trailers_due)
        mk__h2_output_add_head(s);
    if (n || !s->trailers_due)
        put_data_head(h2, s, n, s->trailers_due ? 0 : MK__H2_FLAG_END_STREAM);
    if (!s->trailers_due)
        mk__h2_stream_complete(s);
}

/* The stream has nothing to send now, until it is woken again; with -EBUSY in the next turn. */
static void defer_stream(struct mk__h2_stream *s, ssize_t n)
{
    mk__h2_scheduler_remove(&s->priority);
    if (n == -EBUSY)
        s->req->ops->wake(s->req);
}

/* Sends one frame of a stream. Returns 0, MK_AGAIN (the socket is full) or -errno. */
static int put_data(struct mk__h2 *h2, struct mk__h2_stream *s)
{
    int r = make_room(h2, DATA_BYTES_MAX, 0);
    if (r != 0)
        return r;
    int32_t window = get_window(s);
    size_t size = window < 0 ? 0 : window < MK__H2_FRAME_BYTES ? (size_t)window : MK__H2_FRAME_BYTES;
    bool is_end;
    ssize_t n = read_payload(h2, s, size, &is_end);
    mk__h2_timeout_note(s);
    if (n < 0 && n != -EBUSY) {
        mk__h2_control_reset_stream(s, MK__H2_ERR_INTERNAL);
    } else if (is_end) {
        end_body(h2, s, (size_t)n);
    } else if (n > 0) {
        put_data_head(h2, s, (size_t)n, 0);
        mk__h2_scheduler_rotate(&h2->scheduler, &s->priority);
    } else {
        defer_stream(s, n);
    }
    return 0;
}

/* ── a turn ── */

/* Gathers frames until there are no more. Returns 0, MK_AGAIN (the socket is full) or -errno. */
static int put_frames(struct mk__h2 *h2)
{
    for (;;) {
        int r = put_control(h2);
        if (r != 0 || mk__h2_is_terminated(h2))
            return r;
        r = put_heads(h2);
        if (r != 0)
            return r;
        struct mk__h2_stream *s = choose_stream(h2);
        if (!s && !h2->control.len)
            return 0;
        if (s)
            r = put_data(h2, s);
        if (r != 0)
            return r;
    }
}

/* What an error leaves in the output, which all connections of the thread use, is not sent. */
int mk__h2_output_send(struct mk__h2 *h2)
{
    struct mk__scratch *out = get_out(h2);
    assert(out->len == 0);
    h2->sent = 0;
    int r = flush_out(h2, 0);
    if (r == 0)
        r = put_frames(h2);
    if (r < 0)
        out->len = 0;
    mk__h2_stream_free_ended(h2);
    return r == 0 ? flush_out(h2, 0) : r;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * The session of an HTTP/2 connection (http/h2/h2.h): its beginning and end, and the order of its frames, of which each
 * is passed to what handles it.
 */
#include "http/h2/h2.h"

#include "http/h2/alloc.h"

#include <errno.h>

/* ── which frame may come now ── */

/* Reads the preface: RFC 9113 section 3.4. Returns false unless it is complete. */
static bool read_preface(struct mk__h2 *h2, struct mk_str *in)
{
    static const struct mk_str preface = MK_STR("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    size_t left = preface.len - h2->preface_len, n = in->len < left ? in->len : left;
    if (n && memcmp(in->p, preface.p + h2->preface_len, n) != 0) {
        mk__h2_control_terminate(h2, MK__H2_ERR_PROTOCOL);
        return false;
    }
    h2->preface_len = (uint8_t)(h2->preface_len + n);
    *in = mk_str_after(*in, n);
    return h2->preface_len == preface.len;
}

/* Returns whether the frame may come now: sections 3.4 and 6.10. */
static bool is_in_order(const struct mk__h2 *h2, const struct mk__h2_frame *frame)
{
    bool continues = frame->type == MK__H2_FRAME_CONTINUATION;
    if (!h2->settings_received)
        return frame->type == MK__H2_FRAME_SETTINGS && !(frame->flags & MK__H2_FLAG_ACK);
    if (h2->block != MK__H2_BLOCK_NONE)
        return continues && frame->stream_id == h2->block_id;
    return !continues;
}

/* ── DATA ── */

/* Ignores the payload of a DATA frame, but for the connection's window. */
static void ignore_data(struct mk__h2 *h2)
{
    mk__h2_control_consume(h2, NULL, h2->reader.frame.len);
    mk__h2_frame_skip(&h2->reader);
}

/* A DATA frame for a stream that is not open: section 5.1. */
static void reject_data(struct mk__h2 *h2, int32_t id)
{
    switch (mk__h2_streams_classify(&h2->table, id)) {
    case MK__H2_STREAMS_RESET:
        ignore_data(h2);
        break;
    case MK__H2_STREAMS_CLOSED:
        mk__h2_control_terminate(h2, MK__H2_ERR_STREAM_CLOSED);
        break;
    default:
        mk__h2_control_terminate(h2, MK__H2_ERR_PROTOCOL);
    }
}

/* Counts the payload, with its padding, against both windows: section 6.9.1. */
static void begin_data(struct mk__h2 *h2, const struct mk__h2_frame *frame)
{
    struct mk__h2_stream *s = mk__h2_find_stream(h2, frame->stream_id);
    enum mk__h2_error error = MK__H2_ERR_NO_ERROR;
    h2->in.used += frame->len;
    if (h2->in.used > h2->in.size) {
        mk__h2_control_terminate(h2, MK__H2_ERR_FLOW_CONTROL);
        return;
    }
    if (!s) {
        reject_data(h2, frame->stream_id);
        return;
    }
    if (s->recv_ended)
        error = MK__H2_ERR_STREAM_CLOSED;
    else if (frame->len > s->in.size - s->in.used)
        error = MK__H2_ERR_FLOW_CONTROL;
    if (error)
        mk__h2_control_reset_stream(s, error);
    if (s->reset)
        ignore_data(h2);
    else
        s->in.used += frame->len;
}

/* Takes a chunk of the body, which must not be longer than announced: section 8.1.1. */
static void take_data(struct mk__h2 *h2, struct mk_str chunk)
{
    struct mk__h2_stream *s = mk__h2_find_stream(h2, h2->reader.frame.stream_id);
    if (s && s->length_left >= 0 && chunk.len > (uint64_t)s->length_left)
        mk__h2_control_reset_stream(s, MK__H2_ERR_PROTOCOL);
    if (!s || s->reset) {
        mk__h2_control_consume(h2, NULL, chunk.len);
        return;
    }
    if (s->length_left >= 0)
        s->length_left -= (int64_t)chunk.len;
    mk__h2_stream_data(s, chunk);
}

static void end_data(struct mk__h2 *h2, const struct mk__h2_frame *frame)
{
    struct mk__h2_stream *s = mk__h2_find_stream(h2, frame->stream_id);
    bool ends = frame->flags & MK__H2_FLAG_END_STREAM;
    uint32_t padding = h2->reader.kept_len ? 1u + h2->reader.payload[0] : 0;
    if (padding)
        mk__h2_control_consume(h2, s, padding);
    if (frame->len == padding && !ends)
        mk__h2_flood_count(h2, MK__H2_FLOOD_EMPTY);
    if (s && ends)
        mk__h2_stream_data_end(s);
}

/* ── frames ── */

static void begin_frame(struct mk__h2 *h2, const struct mk__h2_frame *frame)
{
    bool ends = frame->flags & MK__H2_FLAG_END_STREAM;
    enum mk__h2_error error = mk__h2_frame_check(frame);
    mk__h2_flood_check_frame(h2, frame->type, frame->len, frame->stream_id, ends);
    if (!is_in_order(h2, frame))
        mk__h2_control_terminate(h2, MK__H2_ERR_PROTOCOL);
    else if (error)
        mk__h2_control_terminate(h2, error);
    else if (mk__h2_is_terminated(h2)) /* by the flood */
        return;
    else if (frame->type == MK__H2_FRAME_HEADERS)
        mk__h2_recv_begin_block(h2);
    else if (frame->type == MK__H2_FRAME_DATA)
        begin_data(h2, frame);
}

static void take_bytes(struct mk__h2 *h2, const struct mk__h2_frame *frame, struct mk_str bytes)
{
    if (frame->type == MK__H2_FRAME_DATA)
        take_data(h2, bytes);
    else
        mk__h2_recv_block(h2, bytes);
}

static void end_frame(struct mk__h2 *h2, const struct mk__h2_frame *frame)
{
    if (frame->type == MK__H2_FRAME_DATA)
        end_data(h2, frame);
    else if (frame->type == MK__H2_FRAME_HEADERS || frame->type == MK__H2_FRAME_CONTINUATION)
        mk__h2_recv_end_block(h2);
    else
        mk__h2_recv_control(h2);
    mk__h2_stream_free_ended(h2);
}

void mk__h2_receive(struct mk__h2 *h2, struct mk_str in)
{
    const struct mk__h2_frame *frame = &h2->reader.frame;
    struct mk_str bytes;
    bool more = read_preface(h2, &in);
    while (more && !mk__h2_is_terminated(h2)) {
        switch (mk__h2_frame_read(&h2->reader, &in, &bytes)) {
        case MK__H2_READ_MORE:
            more = false;
            break;
        case MK__H2_READ_BEGIN:
            begin_frame(h2, frame);
            break;
        case MK__H2_READ_BYTES:
            take_bytes(h2, frame, bytes);
            break;
        case MK__H2_READ_END:
            end_frame(h2, frame);
            break;
        case MK__H2_READ_PADDING_ERROR:
            mk__h2_control_terminate(h2, MK__H2_ERR_PROTOCOL);
        }
    }
}

/* ── opening and closing ── */

void mk__h2_release_shared(struct mk__context *http)
{
    if (!*mk__h2_shared_slot(http))
        return;
    mk__h2_flood_log_totals(http);
    mk__h2_alloc_free_shared(http);
}

static void init_session(struct mk__h2 *h2, struct mk__conn *c, struct mk__h2_shared *shared)
{
    struct mk__context *http = c->http;
    *h2 = (struct mk__h2){.conn = c,
                          .shared = shared,
                          .settings_version = http->settings_version,
                          .initial_settings = *http->settings->h2,
                          .window = MK__H2_WINDOW_BYTES,
                          .stream_window = MK__H2_WINDOW_BYTES,
                          .in = {.size = MK__H2_CONN_WINDOW_BYTES},
                          .batch = MK__H2_FRAME_BYTES};
    mk_list_init(&h2->streams);
    mk_list_init(&h2->woken);
    mk_list_init(&h2->changed);
    mk_list_init(&h2->heads);
    mk_list_init(&h2->ended);
    mk__h2_scheduler_init(&h2->scheduler);
    mk__hpack_decoder_init(&h2->decoder, http->account);
    mk__hpack_encoder_init(&h2->encoder, http->account);
    h2->acks_max = mk__h2_flood_acks_max(h2);
}

int mk__h2_open(struct mk__conn *c, mk_timer_fn on_grace_timer)
{
    struct mk__context *http = c->http;
    struct mk__h2_shared *shared = *mk__h2_shared_slot(http);
    if (!shared)
        shared = mk__h2_alloc_shared(http);
    struct mk__h2 *h2 = shared ? mk_account_alloc(http->account, sizeof(*h2)) : NULL;
    if (!h2)
        return -ENOMEM;
    init_session(h2, c, shared);
    mk_timer_init(&h2->grace_timer, on_grace_timer);
    c->proto_data = h2;
    mk__h2_control_send_preface(h2);
    return mk__h2_is_terminated(h2) ? -ENOMEM : 0;
}

void mk__h2_close(struct mk__conn *c)
{
    struct mk__h2 *h2 = c->proto_data;
    if (!h2) /* it has ended before its connection */
        return;
    h2->shutdown = MK__H2_SHUTDOWN_TERMINATED; /* sends nothing more */
    mk__h2_recv_drop_block(h2);
    mk_timer_cancel(&h2->grace_timer);
    while (!mk_list_empty(&h2->streams))
        mk__h2_stream_free(MK_LIST_FIRST(&h2->streams, struct mk__h2_stream, link));
    mk__h2_alloc_release(h2, &h2->control);
    mk__hpack_decoder_release(&h2->decoder);
    mk__hpack_encoder_release(&h2->encoder);
    mk_account_free(c->http->account, h2, sizeof(*h2));
    c->proto_data = NULL;
}

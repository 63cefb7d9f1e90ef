// SPDX-License-Identifier: Apache-2.0
/*
 * Input of an HTTP/2 connection that does not belong to an open stream (http/h2/h2.h): header blocks, and frames that
 * carry neither head nor body.
 */
#include "http/h2/h2.h"

#include "http/h2/alloc.h"

#include <assert.h>
#include <errno.h>

enum { HPACK_BOMB_FACTOR = 4 /* a head of this many times the limit is an attack */ };

/* ── header blocks: what becomes of them ── */

/* Resets the new stream. Its DATA may be on its way. */
static void refuse_stream(struct mk__h2 *h2, enum mk__h2_error error)
{
    if (!h2->block_ends_stream)
        mk__h2_streams_note_reset(&h2->table, h2->block_id);
    mk__h2_control_reset(h2, h2->block_id, error);
}

/* Logs a stream beyond the limit: it is refused, or the connection is terminated if the client knows the limit. */
static void reject_excess_stream(struct mk__h2 *h2)
{
    uint64_t most = (uint64_t)h2->initial_settings.streams_max; /* the limit that was announced to the client */
    mk__h2_flood_log(h2, h2->settings_acked ? MK__H2_FLOOD_TOO_MANY_STREAMS : MK__H2_FLOOD_REFUSED, most);
    if (h2->settings_acked)
        mk__h2_control_terminate(h2, MK__H2_ERR_PROTOCOL);
    else
        refuse_stream(h2, MK__H2_ERR_REFUSED_STREAM);
}

/* Begins to receive a head. Returns false without memory. */
static bool begin_head(struct mk__h2 *h2)
{
    assert(!h2->head_stream && !h2->head_buf);
    struct mk__h2_stream *s = mk__h2_stream_new(h2, h2->block_id);
    h2->head_buf = s ? mk__h2_alloc_get_head_buf(h2) : NULL;
    if (s && !h2->head_buf)
        mk__h2_stream_free(s);
    if (!h2->head_buf)
        return false;
    h2->head_stream = s;
    h2->block = MK__H2_BLOCK_HEAD;
    h2->processed_id = h2->block_id;
    return true;
}

/*
 * A new stream: refused if there are too many; ignored after the last GOAWAY, which tells the client that it may
 * repeat the request elsewhere.
 */
static void open_stream(struct mk__h2 *h2)
{
    mk__h2_streams_open(&h2->table, h2->block_id);
    if (h2->shutdown == MK__H2_SHUTDOWN_GOAWAY)
        mk__h2_streams_note_reset(&h2->table, h2->block_id);
    else if (h2->table.n >= h2->initial_settings.streams_max)
        reject_excess_stream(h2);
    else if (!begin_head(h2))
        refuse_stream(h2, MK__H2_ERR_INTERNAL);
}

/* A second block of a stream: trailers, which end it. */
static void begin_trailers(struct mk__h2 *h2)
{
    struct mk__h2_stream *s = mk__h2_find_stream(h2, h2->block_id);
    if (s->recv_ended)
        mk__h2_control_reset_stream(s, MK__H2_ERR_STREAM_CLOSED);
    if (s->reset)
        return;
    h2->block = MK__H2_BLOCK_TRAILERS;
    h2->block_malformed = !h2->block_ends_stream;
}

void mk__h2_recv_begin_block(struct mk__h2 *h2)
{
    const struct mk__h2_frame *frame = &h2->reader.frame;
    assert(h2->block == MK__H2_BLOCK_NONE && !h2->block_rest.len);
    h2->block = MK__H2_BLOCK_IGNORED;
    h2->block_id = frame->stream_id;
    h2->block_ends_stream = frame->flags & MK__H2_FLAG_END_STREAM;
    h2->block_malformed = false;
    h2->block_bytes = 0;
    mk__hpack_decode_begin(&h2->decoder);
    if (frame->stream_id % 2 == 0) {
        mk__h2_control_terminate(h2, MK__H2_ERR_PROTOCOL);
        return;
    }
    switch (mk__h2_streams_classify(&h2->table, frame->stream_id)) {
    case MK__H2_STREAMS_IDLE:
        open_stream(h2);
        break;
    case MK__H2_STREAMS_OPEN:
        begin_trailers(h2);
        break;
    case MK__H2_STREAMS_RESET:
        break;
    case MK__H2_STREAMS_SKIPPED:
        mk__h2_control_terminate(h2, MK__H2_ERR_PROTOCOL);
        break;
    case MK__H2_STREAMS_CLOSED:
        mk__h2_control_terminate(h2, MK__H2_ERR_STREAM_CLOSED);
    }
}

/* ── header blocks: their fields ── */

static void take_trailer(struct mk__h2 *h2, const struct mk__hpack_field *field)
{
    struct mk__h2_stream *s = mk__h2_find_stream(h2, h2->block_id);
    h2->block_malformed |= !mk__h2_request_head_is_valid_field(&field->row);
    if (s && !h2->block_malformed)
        mk__h2_stream_trailer(s, field->row.name, field->row.value);
}

/* Returns how many bytes the fields of a block may have. */
static uint64_t count_bytes_max(const struct mk__h2 *h2)
{
    return HPACK_BOMB_FACTOR * ((uint64_t)mk__h2_http(h2)->settings->head.head_bytes_max + MK__READ_BYTES);
}

static void take_field(struct mk__h2 *h2, const struct mk__hpack_field *field, uint64_t most)
{
    h2->block_bytes += field->bytes;
    if (h2->block_bytes > most)
        mk__h2_flood_terminate(h2, MK__H2_FLOOD_HPACK_BOMB, most);
    else if (h2->block == MK__H2_BLOCK_HEAD)
        mk__h2_request_head_add(&h2->head_buf->head, field);
    else if (h2->block == MK__H2_BLOCK_TRAILERS)
        take_trailer(h2, field);
}

/* Keeps the beginning of a field until the rest of it arrives. */
static void keep_rest(struct mk__h2 *h2, struct mk_str rest)
{
    struct mk__h2_bytes *kept = &h2->block_rest;
    uint64_t most = count_bytes_max(h2);
    if (rest.len > most) {
        mk__h2_flood_terminate(h2, MK__H2_FLOOD_HPACK_BOMB, most);
    } else if (kept->len) {
        memmove(kept->p, rest.p, rest.len);
        kept->len = (uint32_t)rest.len;
        if (!rest.len)
            mk__h2_alloc_release(h2, kept);
    } else if (rest.len) {
        char *to = mk__h2_alloc_extend(h2, kept, rest.len);
        if (to)
            memcpy(to, rest.p, rest.len);
        else
            mk__h2_control_terminate(h2, MK__H2_ERR_INTERNAL);
    }
}

/* Strings that have to be decoded are put into the output, which is empty as long as input is read. */
void mk__h2_recv_block(struct mk__h2 *h2, struct mk_str bytes)
{
    const struct mk__scratch *room = &h2->shared->out;
    const uint64_t most = count_bytes_max(h2);
    MK_UNINITIALIZED struct mk__hpack_field field;
    int r = 0;
    assert(h2->block != MK__H2_BLOCK_NONE && room->len == 0);
    if (h2->block_rest.len) {
        char *to = mk__h2_alloc_extend(h2, &h2->block_rest, bytes.len);
        if (!to) {
            mk__h2_control_terminate(h2, MK__H2_ERR_INTERNAL);
            return;
        }
        memcpy(to, bytes.p, bytes.len);
        bytes = mk_str(h2->block_rest.p, h2->block_rest.len);
    }
    while (r == 0 && !mk__h2_is_terminated(h2)) {
        r = mk__hpack_decode(&h2->decoder, &bytes, room->data, room->size, &field);
        if (r == 0)
            take_field(h2, &field, most);
    }
    if (r == MK_AGAIN)
        keep_rest(h2, bytes);
    else if (r != 0)
        mk__h2_control_terminate(h2, r == -EINVAL ? MK__H2_ERR_COMPRESSION : MK__H2_ERR_INTERNAL);
}

/* ── header blocks: their ends ── */

/* Starts the request. */
static void start_request(struct mk__h2 *h2, struct mk__h2_stream *s)
{
    struct mk__h2_request_head *head = &h2->head_buf->head;
    int status = -mk__h2_request_head_end(head, !s->recv_ended);
    s->extended_connect = head->protocol.len;
    mk__h2_scheduler_take_early(&h2->scheduler, &s->priority);
    mk__h2_stream_begin(s, head, status);
}

static void end_head(struct mk__h2 *h2)
{
    struct mk__h2_stream *s = h2->head_stream;
    const struct mk__h2_request_head *head = &h2->head_buf->head;
    assert(s && !s->req);
    s->recv_ended = h2->block_ends_stream;
    s->length_left = head->length;
    bool lacks_body = s->recv_ended && head->length > 0;
    if (h2->block_malformed || lacks_body || !mk__h2_request_head_is_well_formed(head))
        mk__h2_control_reset_stream(s, MK__H2_ERR_PROTOCOL);
    else
        start_request(h2, s);
    mk__h2_alloc_put_head_buf(h2);
    if (mk__conn_is_used_up(h2->conn))
        mk__h2_control_shutdown_notice(h2);
    if (h2->shutdown == MK__H2_SHUTDOWN_NOTICE && h2->heads_since_notice++ > h2->initial_settings.streams_max)
        mk__h2_control_goaway(h2); /* more requests than can have been in flight */
}

static void end_trailers(struct mk__h2 *h2)
{
    struct mk__h2_stream *s = mk__h2_find_stream(h2, h2->block_id);
    if (s && h2->block_malformed)
        mk__h2_control_reset_stream(s, MK__H2_ERR_PROTOCOL);
    else if (s)
        mk__h2_stream_data_end(s);
}

void mk__h2_recv_drop_block(struct mk__h2 *h2)
{
    h2->block = MK__H2_BLOCK_NONE;
    mk__h2_alloc_release(h2, &h2->block_rest);
    mk__h2_alloc_put_head_buf(h2);
}

/* Streams do not depend on each other any more (RFC 9113 section 5.3), but none may depend on itself. */
void mk__h2_recv_end_block(struct mk__h2 *h2)
{
    enum mk__h2_block block = h2->block;
    h2->block_malformed |= mk__h2_frame_dependency(&h2->reader) == h2->block_id;
    if (!(h2->reader.frame.flags & MK__H2_FLAG_END_HEADERS))
        return;
    if (h2->block_rest.len) {
        mk__h2_control_terminate(h2, MK__H2_ERR_COMPRESSION);
        return;
    }
    h2->block = MK__H2_BLOCK_NONE;
    if (block == MK__H2_BLOCK_HEAD)
        end_head(h2);
    else if (block == MK__H2_BLOCK_TRAILERS)
        end_trailers(h2);
}

/* ── SETTINGS ── */

/* Changes the window of each stream, also of those that have used more: section 6.9.2. */
static enum mk__h2_error set_stream_window(struct mk__h2 *h2, uint32_t value)
{
    int64_t change = (int64_t)value - h2->stream_window;
    MK_LIST_EACH_ITEM(&h2->streams, struct mk__h2_stream, link, s) {
        if (s->window + change > INT32_MAX)
            return MK__H2_ERR_FLOW_CONTROL;
        s->window = (int32_t)(s->window + change);
    }
    h2->stream_window = (int32_t)value;
    return MK__H2_ERR_NO_ERROR;
}

static enum mk__h2_error set_table_size(struct mk__h2 *h2, uint32_t value)
{
    mk__hpack_encode_resize(&h2->encoder, value);
    return MK__H2_ERR_NO_ERROR;
}

/* The values that a setting may have, and the error for others. NULL: the value is of no interest. */
static const struct {
    uint16_t setting;
    uint8_t error;
    uint32_t least, most;
    enum mk__h2_error (*set)(struct mk__h2 *h2, uint32_t value);
} settings[] = {
    {MK__H2_SETTING_HEADER_TABLE_SIZE, MK__H2_ERR_NO_ERROR, 0, UINT32_MAX, set_table_size},
    {MK__H2_SETTING_ENABLE_PUSH, MK__H2_ERR_PROTOCOL, 0, 1, NULL},
    {MK__H2_SETTING_INITIAL_WINDOW_SIZE, MK__H2_ERR_FLOW_CONTROL, 0, INT32_MAX, set_stream_window},
    {MK__H2_SETTING_MAX_FRAME_SIZE, MK__H2_ERR_PROTOCOL, MK__H2_FRAME_BYTES, (1 << 24) - 1, NULL},
    {MK__H2_SETTING_ENABLE_CONNECT_PROTOCOL, MK__H2_ERR_PROTOCOL, 0, 1, NULL},
    {MK__H2_SETTING_NO_RFC7540_PRIORITIES, MK__H2_ERR_PROTOCOL, 0, 1, NULL},
};

static enum mk__h2_error apply_setting(struct mk__h2 *h2, uint16_t setting, uint32_t value)
{
    for (size_t i = 0; i < MK_COUNT_OF(settings); i++) {
        if (settings[i].setting != setting)
            continue;
        if (value < settings[i].least || value > settings[i].most)
            return settings[i].error;
        return settings[i].set ? settings[i].set(h2, value) : MK__H2_ERR_NO_ERROR;
    }
    return MK__H2_ERR_NO_ERROR; /* unknown ones are ignored */
}

static void on_settings(struct mk__h2 *h2)
{
    const struct mk__h2_frame_reader *r = &h2->reader;
    h2->settings_received = true;
    if (r->frame.flags & MK__H2_FLAG_ACK) {
        if (h2->settings_acked) /* there was one SETTINGS frame of ours */
            mk__h2_control_terminate(h2, MK__H2_ERR_PROTOCOL);
        h2->settings_acked = true;
        return;
    }
    assert(r->kept_len == r->frame.len); /* flood.c admits no more */
    for (const uint8_t *at = r->payload; at < r->payload + r->kept_len; at += MK__H2_FRAME_SETTING_BYTES) {
        enum mk__h2_error error = apply_setting(h2, (uint16_t)(at[0] << 8 | at[1]), mk__h2_frame_get32(at + 2));
        if (error) {
            mk__h2_control_terminate(h2, error);
            return;
        }
    }
    mk__h2_flood_count(h2, MK__H2_FLOOD_SETTINGS);
    mk__h2_control_ack_settings(h2);
}

/* ── other control frames ── */

static void on_ping(struct mk__h2 *h2)
{
    if (h2->reader.frame.flags & MK__H2_FLAG_ACK) {
        if (h2->shutdown == MK__H2_SHUTDOWN_NOTICE)
            mk__h2_control_goaway(h2);
        return;
    }
    mk__h2_flood_count(h2, MK__H2_FLOOD_PING);
    mk__h2_control_ack_ping(h2, h2->reader.payload);
}

static void on_goaway(struct mk__h2 *h2)
{
    h2->goaway_received = true;
}

/* Returns whether a stream can have been opened: frames of others are an error of the connection. */
static bool check_opened(struct mk__h2 *h2, int32_t id)
{
    enum mk__h2_streams_state state = mk__h2_streams_classify(&h2->table, id);
    if (state != MK__H2_STREAMS_IDLE && state != MK__H2_STREAMS_SKIPPED)
        return true;
    mk__h2_control_terminate(h2, MK__H2_ERR_PROTOCOL);
    return false;
}

static void on_reset(struct mk__h2 *h2)
{
    struct mk__h2_stream *s = mk__h2_find_stream(h2, h2->reader.frame.stream_id);
    if (!check_opened(h2, h2->reader.frame.stream_id) || !s)
        return;
    if (s->req)
        mk__h2_flood_count(h2, MK__H2_FLOOD_RESET);
    mk__h2_stream_free(s);
}

/* Opens a window. Returns the error of an increment of 0, or of one that is too large: section 6.9. */
static enum mk__h2_error open_window(int32_t *window, uint32_t increment)
{
    if (increment == 0)
        return MK__H2_ERR_PROTOCOL;
    if ((int64_t)*window + increment > INT32_MAX)
        return MK__H2_ERR_FLOW_CONTROL;
    *window += (int32_t)increment;
    return MK__H2_ERR_NO_ERROR;
}

static void on_window_update(struct mk__h2 *h2)
{
    int32_t id = h2->reader.frame.stream_id;
    uint32_t increment = mk__h2_frame_get32(h2->reader.payload) & INT32_MAX;
    struct mk__h2_stream *s = mk__h2_find_stream(h2, id);
    enum mk__h2_error error = MK__H2_ERR_NO_ERROR;
    if (id && !check_opened(h2, id))
        return;
    if (!id || s)
        error = open_window(id ? &s->window : &h2->window, increment);
    if (error && id)
        mk__h2_control_reset_stream(s, error);
    else if (error)
        mk__h2_control_terminate(h2, error);
    else if (increment < MK__H2_WINDOW_UPDATE_MIN && !h2->frame_counted)
        mk__h2_flood_count(h2, MK__H2_FLOOD_WINDOW_UPDATE);
}

/* Priorities of RFC 7540 are ignored: RFC 9113 section 5.3. */
static void on_priority(struct mk__h2 *h2)
{
    int32_t id = h2->reader.frame.stream_id;
    struct mk__h2_stream *s = mk__h2_find_stream(h2, id);
    mk__h2_flood_count(h2, MK__H2_FLOOD_PRIORITY);
    if (mk__h2_frame_dependency(&h2->reader) != id)
        return;
    if (s)
        mk__h2_control_reset_stream(s, MK__H2_ERR_PROTOCOL);
    else
        mk__h2_control_terminate(h2, MK__H2_ERR_PROTOCOL);
}

/* RFC 9218 section 7.1. Bytes that were not kept hold nothing that this server knows. */
static void on_priority_update(struct mk__h2 *h2)
{
    const struct mk__h2_frame_reader *r = &h2->reader;
    int32_t id = (int32_t)(mk__h2_frame_get32(r->payload) & INT32_MAX);
    struct mk__h2_stream *s = mk__h2_find_stream(h2, id);
    mk__h2_flood_count(h2, MK__H2_FLOOD_PRIORITY);
    if (id % 2 == 0) { /* 0, or a stream that the server would have to push */
        mk__h2_control_terminate(h2, MK__H2_ERR_PROTOCOL);
        return;
    }
    if (!s && id <= h2->table.last_id)
        return; /* the stream is closed */
    struct mk__h2_priority *priority = s ? &s->priority : mk__h2_scheduler_put_early(&h2->scheduler, id);
    mk__h2_priority_parse(&h2->scheduler, priority, mk_str((const char *)r->payload + 4, r->kept_len - 4u));
    priority->updated = true;
}

static void (*const handlers[])(struct mk__h2 *h2) = {
    [MK__H2_FRAME_PRIORITY] = on_priority,
    [MK__H2_FRAME_RST_STREAM] = on_reset,
    [MK__H2_FRAME_SETTINGS] = on_settings,
    [MK__H2_FRAME_PING] = on_ping,
    [MK__H2_FRAME_GOAWAY] = on_goaway,
    [MK__H2_FRAME_WINDOW_UPDATE] = on_window_update,
    [MK__H2_FRAME_PRIORITY_UPDATE] = on_priority_update,
};

void mk__h2_recv_control(struct mk__h2 *h2)
{
    uint8_t type = h2->reader.frame.type;
    if (type < MK_COUNT_OF(handlers) && handlers[type])
        handlers[type](h2);
}

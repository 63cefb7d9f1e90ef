// SPDX-License-Identifier: Apache-2.0
/*
 * Input of an HTTP/2 connection that does not belong to an open stream (http/h2/h2.h): stream numbers, heads, and
 * frames that carry neither head nor body.
 */
#include "http/h2/h2.h"

#include "http/h2/alloc.h"

#include <assert.h>

enum { HPACK_BOMB_FACTOR = 4 /* a head of this many times the limit is an attack */ };

/*
 * Terminates the connection if the stream number is one that the client has skipped: RFC 9113 section 5.1.1 makes these
 * closed streams. nghttp2 cannot distinguish them from streams that were used, and accepts the frame.
 */
static void check_stream_id(struct mk__h2 *h2, int32_t id)
{
    if (id > h2->last_id) {
        h2->skipped_from = h2->last_id + (h2->last_id ? 2 : 1);
        h2->last_id = id;
    } else if (id >= h2->skipped_from && id < h2->last_id) {
        mk__h2_terminate(h2, MK__H2_ERR_PROTOCOL);
    }
}

void mk__h2_recv_frame(struct mk__h2 *h2, uint8_t type, size_t bytes, int32_t stream_id, bool end_stream)
{
    mk__h2_flood_check_frame(h2, type, bytes, stream_id, end_stream);
    if (type == MK__H2_FRAME_HEADERS && stream_id % 2 != 0)
        check_stream_id(h2, stream_id);
}

/* ── heads ── */

struct mk__h2_stream *mk__h2_recv_begin_head(struct mk__h2 *h2, int32_t id)
{
    assert(!h2->head_stream && !h2->head_buf && id > 0);
    struct mk__h2_stream *s = mk__h2_stream_new(h2, id);
    h2->head_buf = s ? mk__h2_alloc_get_head_buf(h2) : NULL;
    if (h2->head_buf)
        return h2->head_stream = s;
    if (s)
        mk__h2_stream_free(s);
    return NULL;
}

void mk__h2_recv_excess_stream(struct mk__h2 *h2, bool knows_limit)
{
    struct mk_list *n, *save;
    int64_t most = h2->initial_settings.streams_max, count = 0; /* the limit that was announced to the client */
    if (!knows_limit) {
        mk__h2_flood_log(h2, MK__H2_FLOOD_REFUSED, (uint64_t)most);
        return;
    }
    MK_LIST_EACH(&h2->streams, n, save)
        count++;
    if (count >= most)
        mk__h2_flood_log(h2, MK__H2_FLOOD_TOO_MANY_STREAMS, (uint64_t)most);
}

void mk__h2_recv_header(struct mk__h2 *h2, int32_t stream_id, struct mk_str name, struct mk_str value)
{
    if (!h2->head_stream || h2->head_stream->id != stream_id) {
        mk__h2_stream_trailer(mk__h2_find_stream(h2, stream_id), name, value);
        return;
    }
    struct mk__h2_request_head *head = &h2->head_buf->head;
    mk__h2_request_head_add(head, name, value);
    uint64_t most = HPACK_BOMB_FACTOR * (uint64_t)h2->head_buf->size;
    if (head->bytes_in > most)
        mk__h2_flood_terminate(h2, MK__H2_FLOOD_HPACK_BOMB, most);
}

void mk__h2_recv_end_head(struct mk__h2 *h2, bool end_stream)
{
    struct mk__h2_stream *s = h2->head_stream;
    assert(s && h2->head_buf && !s->req);
    struct mk_str head;
    s->recv_ended = end_stream;
    int status = mk__h2_request_head_end(&h2->head_buf->head, !end_stream, &head);
    s->extended_connect = h2->head_buf->head.protocol.len;
    mk__h2_scheduler_take_early(&h2->scheduler, &s->priority);
    mk__h2_stream_begin(s, h2->head_buf->head.method, head, status);
    mk__h2_alloc_put_head_buf(h2);
    if (mk__conn_is_used_up(h2->conn))
        mk__h2_submit_shutdown_notice(h2);
    if (h2->shutdown == MK__H2_SHUTDOWN_NOTICE && h2->heads_since_notice++ > h2->initial_settings.streams_max)
        mk__h2_submit_goaway(h2); /* more requests than can have been in flight */
}

/* ── PRIORITY_UPDATE: RFC 9218 section 7.1 ── */

void mk__h2_recv_priority_update(struct mk__h2 *h2, struct mk_str chunk)
{
    struct mk__h2_priority_update *u = &h2->priority_update;
    size_t room = sizeof(u->bytes) - u->len, n = chunk.len < room ? chunk.len : room;
    assert(u->len <= sizeof(u->bytes));
    memcpy(u->bytes + u->len, chunk.p, n);
    u->len += (uint8_t)n;
}

/* Applies the complete h2->priority_update, received on `stream_id`. */
static void apply_priority_update(struct mk__h2 *h2, int32_t stream_id)
{
    struct mk__h2_priority_update u = h2->priority_update;
    int32_t id = (u.bytes[0] & 0x7f) << 24 | u.bytes[1] << 16 | u.bytes[2] << 8 | u.bytes[3];
    h2->priority_update.len = 0;
    mk__h2_flood_count(h2, MK__H2_FLOOD_PRIORITY);
    if (stream_id != 0 || u.len < 4 || id == 0) {
        mk__h2_terminate(h2, u.len < 4 ? MK__H2_ERR_FRAME_SIZE : MK__H2_ERR_PROTOCOL);
        return;
    }
    struct mk__h2_stream *s = mk__h2_find_stream(h2, id);
    if (!s && id <= h2->last_id)
        return; /* the stream is closed */
    struct mk__h2_priority *priority = s ? &s->priority : mk__h2_scheduler_put_early(&h2->scheduler, id);
    mk__h2_priority_parse(&h2->scheduler, priority, mk_str((const char *)u.bytes + 4, u.len - 4u));
    priority->updated = true;
}

/* ── control frames ── */

static void on_ping(struct mk__h2 *h2, bool ack)
{
    if (!ack)
        mk__h2_flood_count(h2, MK__H2_FLOOD_PING);
    else if (h2->shutdown == MK__H2_SHUTDOWN_NOTICE)
        mk__h2_submit_goaway(h2);
}

void mk__h2_recv_control(struct mk__h2 *h2, uint8_t type, int32_t stream_id, bool ack, int32_t increment)
{
    const struct mk__h2_stream *s = mk__h2_find_stream(h2, stream_id);
    if (type == MK__H2_FRAME_PING)
        on_ping(h2, ack);
    else if (type == MK__H2_FRAME_SETTINGS && !ack)
        mk__h2_flood_count(h2, MK__H2_FLOOD_SETTINGS);
    else if (type == MK__H2_FRAME_RST_STREAM && s && s->req)
        mk__h2_flood_count(h2, MK__H2_FLOOD_RESET);
    else if (type == MK__H2_FRAME_PRIORITY)
        mk__h2_flood_count(h2, MK__H2_FLOOD_PRIORITY);
    else if (type == MK__H2_FRAME_PRIORITY_UPDATE)
        apply_priority_update(h2, stream_id);
    else if (type == MK__H2_FRAME_WINDOW_UPDATE && increment < MK__H2_WINDOW_UPDATE_MIN && !h2->frame_counted)
        mk__h2_flood_count(h2, MK__H2_FLOOD_WINDOW_UPDATE);
}

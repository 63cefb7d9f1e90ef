// SPDX-License-Identifier: Apache-2.0
/*
 * What arrives on a connection of HTTP/2 (http/h2.h) and is no stream's yet: the numbers of streams, heads, and the
 * frames that carry neither head nor body.
 */
#include "http/h2.h"

#include "http/h2_memory.h"

enum { FLOOD_FACTOR = 4 /* so many heads too large, and it is an attack */ };

/*
 * A number that the client has left out is that of a closed stream: RFC 9113 section 5.1.1. nghttp2 cannot tell it from
 * a stream that was there once, and lets it pass.
 */
static void check_number(struct mk__h2 *h2, int32_t id)
{
    if (id > h2->last_id) {
        h2->skipped_from = h2->last_id + (h2->last_id ? 2 : 1);
        h2->last_id = id;
    } else if (id >= h2->skipped_from && id < h2->last_id) {
        mk__h2_end(h2, MK__H2_PROTOCOL_ERROR);
    }
}

void mk__h2_incoming_frame(struct mk__h2 *h2, uint8_t type, size_t bytes, int32_t stream_id, bool end_stream)
{
    mk__h2_manners_weigh(h2, type, bytes, stream_id, end_stream);
    if (type == MK__H2_HEADERS && stream_id % 2 != 0)
        check_number(h2, stream_id);
}

/* ── heads ── */

struct mk__h2_stream *mk__h2_incoming_head(struct mk__h2 *h2, int32_t id)
{
    struct mk__h2_stream *s = mk__h2_stream_new(h2, id);
    h2->room = s ? mk__h2_memory_borrow_room(h2) : NULL;
    if (h2->room)
        return h2->head_of = s;
    if (s)
        mk__h2_stream_free(s);
    return NULL;
}

void mk__h2_incoming_crowd(struct mk__h2 *h2, bool knows)
{
    struct mk_list *n, *save;
    int64_t most = h2->guarded.streams_max, count = 0; /* that of the beginning, which the client was told */
    if (!knows) {
        mk__h2_manners_tell(h2, MK__H2_REFUSALS, (uint64_t)most);
        return;
    }
    MK_LIST_EACH(&h2->streams, n, save)
        count++;
    if (count >= most)
        mk__h2_manners_tell(h2, MK__H2_CROWDS, (uint64_t)most);
}

void mk__h2_incoming_field(struct mk__h2 *h2, int32_t stream_id, struct mk_str name, struct mk_str value)
{
    if (!h2->head_of || h2->head_of->id != stream_id)
        return; /* trailers: nobody reads them */
    struct mk__h2_head *head = &h2->room->head;
    mk__h2_head_add(head, name, value);
    uint64_t most = FLOOD_FACTOR * (uint64_t)h2->room->size;
    if (head->bytes_in > most)
        mk__h2_manners_end(h2, MK__H2_BOMBS, most);
}

void mk__h2_incoming_head_end(struct mk__h2 *h2, bool end_stream)
{
    struct mk__h2_stream *s = h2->head_of;
    struct mk_str head;
    s->ended_in = end_stream;
    int status = mk__h2_head_end(&h2->room->head, !end_stream, &head);
    s->connects = h2->room->head.protocol.len;
    mk__h2_order_recall(&h2->order, &s->place);
    mk__h2_stream_begin(s, head, status);
    mk__h2_memory_return_room(h2);
    const struct mk__http_settings *settings = mk__h2_http(h2)->settings;
    if (settings->requests_max && h2->conn->requests >= settings->requests_max)
        mk__h2_warn(h2);
    if (h2->going == MK__H2_WARNED && h2->warned++ > h2->guarded.streams_max)
        mk__h2_say_goodbye(h2); /* more than can have been on their way */
}

/* ── PRIORITY_UPDATE: RFC 9218 section 7.1 ── */

void mk__h2_incoming_update_piece(struct mk__h2 *h2, struct mk_str piece)
{
    struct mk__h2_update *u = &h2->update;
    size_t room = sizeof(u->bytes) - u->len, n = piece.len < room ? piece.len : room;
    memcpy(u->bytes + u->len, piece.p, n);
    u->len += (uint8_t)n;
}

/* h2->update is whole; it came on this stream. */
static void take_update(struct mk__h2 *h2, int32_t stream_id)
{
    struct mk__h2_update u = h2->update;
    int32_t id = (u.bytes[0] & 0x7f) << 24 | u.bytes[1] << 16 | u.bytes[2] << 8 | u.bytes[3];
    h2->update.len = 0;
    mk__h2_manners_note(h2, MK__H2_PRIORITIES);
    if (stream_id != 0 || u.len < 4 || id == 0) {
        mk__h2_end(h2, u.len < 4 ? MK__H2_FRAME_SIZE_ERROR : MK__H2_PROTOCOL_ERROR);
        return;
    }
    struct mk__h2_stream *s = mk__h2_find(h2, id);
    if (!s && id <= h2->last_id)
        return; /* it has been and gone */
    struct mk__h2_place *place = s ? &s->place : mk__h2_order_remember(&h2->order, id);
    mk__h2_order_read(&h2->order, place, mk_str((const char *)u.bytes + 4, u.len - 4u));
    place->updated = true;
}

/* ── frames of a few bytes ── */

static void on_ping(struct mk__h2 *h2, bool ack)
{
    if (!ack)
        mk__h2_manners_note(h2, MK__H2_PINGS);
    else if (h2->going == MK__H2_WARNED)
        mk__h2_say_goodbye(h2);
}

void mk__h2_incoming_control(struct mk__h2 *h2, uint8_t type, int32_t stream_id, bool ack, int32_t increment)
{
    const struct mk__h2_stream *s = mk__h2_find(h2, stream_id);
    if (type == MK__H2_PING)
        on_ping(h2, ack);
    else if (type == MK__H2_SETTINGS_FRAME && !ack)
        mk__h2_manners_note(h2, MK__H2_SETTINGS);
    else if (type == MK__H2_RST_STREAM && s && s->req)
        mk__h2_manners_note(h2, MK__H2_RESETS);
    else if (type == MK__H2_PRIORITY)
        mk__h2_manners_note(h2, MK__H2_PRIORITIES);
    else if (type == MK__H2_PRIORITY_UPDATE)
        take_update(h2, stream_id);
    else if (type == MK__H2_WINDOW_UPDATE && increment < MK__H2_MORSEL && !h2->weighed)
        mk__h2_manners_note(h2, MK__H2_MORSELS);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Control frames of an HTTP/2 connection (http/h2/h2.h): they are queued in one buffer, so that they can be sent from
 * anywhere, and leave with the other frames of the turn. Their number is limited: a client that does not read them is
 * disconnected.
 */
#include "http/h2/h2.h"

#include "http/h2/alloc.h"
#include "loop/loop.h"

#include <assert.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

enum {
    RTT_US_MIN = 1000, /* 64 KB in each are half a gigabit a second */
    RTT_US_MAX = 1000 * 1000,
    PING_BYTES = 8,
    ANSWER_BYTES_MAX = MK__H2_OUT_BYTES - 256, /* with room after them for frames of our own: GOAWAY, PING */
};

/*
 * Queues a frame without its payload. Returns where to write the payload; NULL: the connection is terminated, and
 * sends nothing more. Without memory it ends without a GOAWAY.
 */
static char *add_frame(struct mk__h2 *h2, enum mk__h2_frame_type type, uint8_t flags, int32_t id, size_t len)
{
    if (mk__h2_is_terminated(h2))
        return NULL;
    char *to = mk__h2_alloc_extend(h2, &h2->control, MK__H2_FRAME_HEAD_BYTES + len);
    if (!to) {
        h2->shutdown = MK__H2_SHUTDOWN_TERMINATED;
        return NULL;
    }
    return mk__h2_frame_put_head(to, len, type, flags, id);
}

/*
 * The same for frames that a client can cause: more than fit into an output are too many. Between two turns, where a
 * handler reads from a tunnel or a timer resets a stream, another turn is needed to send it.
 */
static char *add_answer(struct mk__h2 *h2, enum mk__h2_frame_type type, uint8_t flags, int32_t id, size_t len)
{
    if (h2->control.len + MK__H2_FRAME_HEAD_BYTES + len > ANSWER_BYTES_MAX)
        mk__h2_flood_terminate(h2, MK__H2_FLOOD_QUEUED_ACKS, h2->acks_max);
    if (!h2->conn->running)
        mk_task_schedule(mk__h2_http(h2)->loop, &h2->conn->task);
    return add_frame(h2, type, flags, id, len);
}

static char *add_ack(struct mk__h2 *h2, enum mk__h2_frame_type type, size_t len)
{
    if (++h2->acks > h2->acks_max)
        mk__h2_flood_terminate(h2, MK__H2_FLOOD_QUEUED_ACKS, h2->acks_max);
    return add_answer(h2, type, MK__H2_FLAG_ACK, 0, len);
}

void mk__h2_control_ack_settings(struct mk__h2 *h2)
{
    add_ack(h2, MK__H2_FRAME_SETTINGS, 0);
}

void mk__h2_control_ack_ping(struct mk__h2 *h2, const uint8_t payload[PING_BYTES])
{
    char *to = add_ack(h2, MK__H2_FRAME_PING, PING_BYTES);
    if (to)
        memcpy(to, payload, PING_BYTES);
}

/* ── windows ── */

static void add_window_update(struct mk__h2 *h2, int32_t id, uint32_t bytes)
{
    char *to = add_answer(h2, MK__H2_FRAME_WINDOW_UPDATE, 0, id, 4);
    if (to)
        mk__h2_frame_put32(to, bytes);
}

/* Returns the time of a round trip as TCP has measured it, or 0 if it is unknown. */
static uint32_t get_rtt_us(const struct mk__h2 *h2)
{
    struct tcp_info info;
    socklen_t len = sizeof(info);
    return getsockopt(h2->conn->sock.io.fd, IPPROTO_TCP, TCP_INFO, &info, &len) < 0 ? 0 : info.tcpi_rtt;
}

/* Whether the client waits for a window that the handler does not hold back: half of it was used in a round trip. */
static bool is_too_small(const struct mk__h2 *h2, struct mk__h2_inbound *in)
{
    uint64_t now = mk_loop_now_us(mk__h2_http(h2)->loop), before = in->given_us;
    in->given_us = now;
    if (!before || now - before >= RTT_US_MAX)
        return false;
    uint32_t rtt = get_rtt_us(h2);
    return rtt >= RTT_US_MIN && now - before < rtt;
}

/* Gives bytes of a window back when they are half of it, so that few frames are needed; a small one grows. */
static void give_back(struct mk__h2 *h2, struct mk__h2_inbound *in, int32_t id, size_t bytes)
{
    in->due += (uint32_t)bytes;
    assert(in->due <= in->used);
    if (in->due < in->size / 2)
        return;
    if (h2->window_doublings < MK__H2_WINDOW_DOUBLINGS && is_too_small(h2, in))
        h2->window_doublings++;
    uint32_t size = MK__H2_STREAM_WINDOW_BYTES << h2->window_doublings;
    if (!id && size < MK__H2_CONN_WINDOW_BYTES)
        size = MK__H2_CONN_WINDOW_BYTES;
    add_window_update(h2, id, in->due + size - in->size);
    in->used -= in->due;
    in->due = 0;
    in->size = size;
}

void mk__h2_control_consume(struct mk__h2 *h2, struct mk__h2_stream *s, size_t bytes)
{
    if (s && !s->recv_ended && !s->reset)
        give_back(h2, &s->in, s->node.id, bytes);
    give_back(h2, &h2->in, 0, bytes);
}

/* ── the connection preface ── */

void mk__h2_control_send_preface(struct mk__h2 *h2)
{
    const struct mk__http_settings *http = mk__h2_http(h2)->settings;
    const struct {
        uint8_t setting;
        uint32_t value;
    } settings[] = {
        {MK__H2_SETTING_MAX_CONCURRENT_STREAMS, (uint32_t)http->h2->streams_max},
        {MK__H2_SETTING_INITIAL_WINDOW_SIZE, MK__H2_STREAM_WINDOW_BYTES},
        {MK__H2_SETTING_MAX_HEADER_LIST_SIZE, http->head.head_bytes_max},
        {MK__H2_SETTING_ENABLE_CONNECT_PROTOCOL, 1},
        {MK__H2_SETTING_NO_RFC7540_PRIORITIES, 1},
    };
    char *to = add_frame(h2, MK__H2_FRAME_SETTINGS, 0, 0, MK_COUNT_OF(settings) * MK__H2_FRAME_SETTING_BYTES);
    for (size_t i = 0; to && i < MK_COUNT_OF(settings); i++)
        to = mk__h2_frame_put_setting(to, settings[i].setting, settings[i].value);
    add_window_update(h2, 0, MK__H2_CONN_WINDOW_BYTES - MK__H2_WINDOW_BYTES);
}

/* ── ends of streams ── */

void mk__h2_control_reset(struct mk__h2 *h2, int32_t id, enum mk__h2_error error)
{
    char *to = add_answer(h2, MK__H2_FRAME_RST_STREAM, 0, id, 4);
    if (to)
        mk__h2_frame_put32(to, error);
    if (error != MK__H2_ERR_NO_ERROR && error != MK__H2_ERR_INTERNAL) /* which the client has not caused */
        mk__h2_flood_count(h2, MK__H2_FLOOD_STREAM_ERROR);
}

void mk__h2_control_reset_stream(struct mk__h2_stream *s, enum mk__h2_error error)
{
    struct mk__h2 *h2 = s->h2;
    if (s->reset)
        return;
    s->reset = true;
    mk__h2_scheduler_remove(&s->priority);
    mk_list_del(&s->heads);
    mk__h2_stream_end(s);
    if (!s->recv_ended)
        mk__h2_streams_note_reset(&h2->table, s->node.id);
    mk__h2_control_reset(h2, s->node.id, error);
}

/* ── the end of the connection ── */

static void add_goaway(struct mk__h2 *h2, int32_t last_id, enum mk__h2_error error)
{
    char *to = add_frame(h2, MK__H2_FRAME_GOAWAY, 0, 0, 8);
    if (to)
        mk__h2_frame_put32(mk__h2_frame_put32(to, (uint32_t)last_id), error);
}

void mk__h2_control_terminate(struct mk__h2 *h2, enum mk__h2_error error)
{
    add_goaway(h2, h2->processed_id, error);
    h2->shutdown = MK__H2_SHUTDOWN_TERMINATED;
}

/* The PING is acknowledged after all requests that were in flight. */
void mk__h2_control_shutdown_notice(struct mk__h2 *h2)
{
    if (h2->shutdown != MK__H2_SHUTDOWN_NONE)
        return;
    h2->shutdown = MK__H2_SHUTDOWN_NOTICE;
    add_goaway(h2, INT32_MAX, MK__H2_ERR_NO_ERROR);
    char *to = add_frame(h2, MK__H2_FRAME_PING, 0, 0, PING_BYTES);
    if (to)
        memset(to, 0, PING_BYTES);
}

void mk__h2_control_goaway(struct mk__h2 *h2)
{
    if (h2->shutdown >= MK__H2_SHUTDOWN_GOAWAY)
        return;
    add_goaway(h2, h2->processed_id, MK__H2_ERR_NO_ERROR);
    if (!mk__h2_is_terminated(h2))
        h2->shutdown = MK__H2_SHUTDOWN_GOAWAY;
}

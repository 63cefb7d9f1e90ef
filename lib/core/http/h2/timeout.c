// SPDX-License-Identifier: Apache-2.0
/*
 * The states of an HTTP/2 stream (http/h2/h2.h): their table, their order and their timeouts.
 */
#include "http/h2/h2.h"

#include "http/count.h"
#include "loop/loop.h"

#include <monkey/log.h>

#include <assert.h>

#define TO(state) (1u << MK__H2_STREAM_##state)
#define RESPOND(status) MK__ON_TIMEOUT_RESPOND, status

enum { ABORT = MK__ON_TIMEOUT_ABORT };

/* A stream that has sent its head can neither become a tunnel nor return to READ_HEAD. */
enum {
    ANY_END = TO(LINGER) | TO(CLOSED),
    ANY_WORK = TO(READ_BODY) | TO(HANDLER) | TO(DISK) | TO(WRITE) | ANY_END,
};

const struct mk__state_info mk__h2_stream_states[MK__H2_STREAM_STATES] = {
    [MK__H2_STREAM_READ_HEAD] = {"read_head", MK__TIMEOUTS, .next = ANY_WORK | TO(TUNNEL)},
    [MK__H2_STREAM_READ_BODY] = {"read_body", MK__TIMEOUT_BODY, RESPOND(408), .restarts = true, .limits_rate = true,
                                 .can_stall = true, .next = ANY_WORK | TO(TUNNEL)},
    [MK__H2_STREAM_HANDLER] = {"handler", MK__TIMEOUT_HANDLER, RESPOND(503), .notifies_handler = true, .restarts = true,
                               .next = ANY_WORK | TO(TUNNEL)},
    [MK__H2_STREAM_DISK] = {"disk", MK__TIMEOUT_HANDLER, RESPOND(503), .next = ANY_WORK},
    [MK__H2_STREAM_WRITE] = {"write", MK__TIMEOUT_SEND, ABORT, .restarts = true, .can_stall = true,
                             .waits_for_window = true, .next = ANY_WORK},
    [MK__H2_STREAM_TUNNEL] = {"tunnel", MK__TIMEOUT_TUNNEL, ABORT, .restarts = true, .next = TO(TUNNEL) | ANY_END},
    [MK__H2_STREAM_LINGER] = {"linger", MK__TIMEOUT_LINGER, ABORT, .next = TO(CLOSED)},
    [MK__H2_STREAM_CLOSED] = {"closed", MK__TIMEOUTS, .next = 0},
};

static enum mk__h2_stream_state find_state(const struct mk__h2_stream *s)
{
    const struct mk_request *req = s->req;
    if (req->tunnel)
        return MK__H2_STREAM_TUNNEL;
    if (req->file_read)
        return MK__H2_STREAM_DISK;
    if (!mk_list_empty(&s->priority.node) || !mk_list_empty(&s->heads))
        return MK__H2_STREAM_WRITE;
    bool reads = mk__request_wants_body(req) && !mk__request_awaits_continue(req);
    return reads ? MK__H2_STREAM_READ_BODY : MK__H2_STREAM_HANDLER;
}

static uint64_t get_conn_sent_bytes(const struct mk__h2_stream *s)
{
    const struct mk__conn *c = s->h2->conn;
    return c->stream_bytes - (c->sock.held_len - c->sock.held_at);
}

/* Returns whether the client reads other streams and would read this one, too. */
static bool is_conn_progressing(const struct mk__h2_stream *s)
{
    return mk__h2_stream_states[s->state].waits_for_window && get_conn_sent_bytes(s) != s->armed_sent &&
           (s->window > 0 || s->h2->conn->sock.held);
}

static void arm_timer(struct mk__h2_stream *s)
{
    const struct mk__context *http = mk__h2_http(s->h2);
    const struct mk__http_limits *limits = mk__request_get_limits(s->req, http);
    s->armed = true;
    s->armed_bytes = s->req ? mk__request_count_bytes(s->req) : 0;
    s->armed_sent = get_conn_sent_bytes(s);
    mk_timer_arm(http->loop, &s->timer, limits->timeout_ms[mk__h2_stream_states[s->state].timeout]);
}

void mk__h2_timeout_enter(struct mk__h2_stream *s, enum mk__h2_stream_state state)
{
    assert(mk__h2_stream_states[s->state].next & 1u << state);
    if (s->state != state)
        mk_log_debug("connection %d, stream %d: %s to %s", s->h2->conn->event.fd, s->node.id,
                     mk__h2_stream_states[s->state].name, mk__h2_stream_states[state].name);
    s->state = (uint8_t)state;
    if (state != MK__H2_STREAM_CLOSED)
        arm_timer(s);
}

static void update_state(struct mk__h2_stream *s)
{
    struct mk_request *req = s->req;
    if (!req)
        return;
    enum mk__h2_stream_state before = s->state, state = find_state(s);
    const struct mk__state_info *info = &mk__h2_stream_states[state];
    if (s->armed && state == before && (mk__request_count_bytes(req) == s->armed_bytes || !info->restarts))
        return;
    if (info->limits_rate && (!s->armed || before != state))
        mk__request_restart_rate(req);
    mk__h2_timeout_enter(s, state);
}

void mk__h2_timeout_update(struct mk__h2 *h2)
{
    while (!mk_list_empty(&h2->changed)) {
        struct mk__h2_stream *s = MK_LIST_FIRST(&h2->changed, struct mk__h2_stream, changed);
        mk_list_del(&s->changed);
        update_state(s);
    }
}

static void on_stream_timer(struct mk_timer *timer)
{
    struct mk__h2_stream *s = MK_CONTAINER_OF(timer, struct mk__h2_stream, timer);
    struct mk_request *req = s->req;
    const struct mk__state_info *info = &mk__h2_stream_states[s->state];
    assert(s->armed && s->state != MK__H2_STREAM_CLOSED);
    s->armed = false;
    if (!req) {
        mk__h2_control_reset_stream(s, MK__H2_ERR_NO_ERROR);
        return;
    }
    if (is_conn_progressing(s)) {
        arm_timer(s);
        return;
    }
    mk__count_one(mk__h2_http(s->h2), MK__COUNT_STREAM_TIMEOUTS);
    if (info->waits_for_window)
        mk__h2_flood_log(s->h2, MK__H2_FLOOD_SEND_TIMEOUT, req->limits->timeout_ms[MK__TIMEOUT_SEND]);
    req->ops->wake(req);
    if (!mk__request_time_out(req, info->timeout_status, info->notifies_handler))
        mk_response_abort(req);
}

void mk__h2_timeout_init(struct mk__h2_stream *s)
{
    mk_timer_init(&s->timer, on_stream_timer);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * What a stream of HTTP/2 waits for (http/h2.h): the table of its waits, where each may lead, and what happens when
 * one has lasted too long.
 */
#include "http/h2.h"

#include "loop/loop.h"

#include <monkey/log.h>

#include <assert.h>

#define TO(wait) (1u << MK__H2_##wait)

/* What has sent its head can neither be taken over any more, nor go back. */
enum {
    ANY_END = TO(LINGER) | TO(CLOSED),
    ANY_WORK = TO(BODY) | TO(HANDLER) | TO(DISK) | TO(SEND) | ANY_END,
};

const struct mk__h2_wait_row mk__h2_waits[MK__H2_WAITS] = {
    [MK__H2_HEAD] = {"head", MK__TIMEOUTS, 0, ANY_WORK | TO(TUNNEL)},
    [MK__H2_BODY] = {"body", MK__TIMEOUT_BODY, 408, ANY_WORK | TO(TUNNEL)},
    [MK__H2_HANDLER] = {"handler", MK__TIMEOUT_HANDLER, 503, ANY_WORK | TO(TUNNEL)},
    [MK__H2_DISK] = {"disk", MK__TIMEOUT_HANDLER, 503, ANY_WORK},
    [MK__H2_SEND] = {"send", MK__TIMEOUT_SEND, 0, ANY_WORK},
    [MK__H2_TUNNEL] = {"tunnel", MK__TIMEOUT_TUNNEL, 0, TO(TUNNEL) | ANY_END},
    [MK__H2_LINGER] = {"linger", MK__TIMEOUT_LINGER, 0, TO(CLOSED)},
    [MK__H2_CLOSED] = {"closed", MK__TIMEOUTS, 0, 0},
};

static enum mk__h2_wait wait_of(const struct mk__h2_stream *s)
{
    const struct mk_request *req = s->req;
    if (req->tunnel)
        return MK__H2_TUNNEL;
    if (req->file_read)
        return MK__H2_DISK;
    if (!mk_list_empty(&s->place.node) || (req->head_sent && !s->parked)) /* parked: there is nothing to send yet */
        return MK__H2_SEND;
    return mk__h2_stream_wants_body(req) ? MK__H2_BODY : MK__H2_HANDLER;
}

static uint64_t taken_bytes(const struct mk__h2_stream *s)
{
    const struct mk__conn *c = s->h2->conn;
    return c->stream_bytes - (c->sock.held_len - c->sock.held_at);
}

/* The client takes what others have for it, and would take this one's. */
static bool others_have_their_turn(const struct mk__h2_stream *s)
{
    return s->wait == MK__H2_SEND && taken_bytes(s) != s->armed_taken &&
           (mk__h2_window(s->h2, s->id) > 0 || s->h2->conn->sock.held);
}

static void arm(struct mk__h2_stream *s)
{
    const struct mk__context *http = mk__h2_http(s->h2);
    const struct mk__http_limits *limits = s->req ? s->req->limits : &http->settings->limits;
    s->armed = true;
    s->armed_bytes = s->req ? s->req->sent_bytes + s->req->body_bytes : 0;
    s->armed_taken = taken_bytes(s);
    mk_timer_arm(http->loop, &s->timer, limits->timeout_ms[mk__h2_waits[s->wait].limit]);
}

void mk__h2_wait_enter(struct mk__h2_stream *s, enum mk__h2_wait wait)
{
    assert(mk__h2_waits[s->wait].next & 1u << wait);
    if (s->wait != wait)
        mk_log_debug("connection %d, stream %d: %s to %s", s->h2->conn->event.fd, s->id, mk__h2_waits[s->wait].name,
                     mk__h2_waits[wait].name);
    s->wait = (uint8_t)wait;
    if (wait != MK__H2_CLOSED)
        arm(s);
}

void mk__h2_wait_settle(struct mk__h2_stream *s)
{
    struct mk_request *req = s->req;
    if (!req)
        return;
    enum mk__h2_wait before = s->wait, wait = wait_of(s);
    uint64_t moved = req->sent_bytes + req->body_bytes;
    if (s->armed && wait == before && (moved == s->armed_bytes || wait == MK__H2_DISK))
        return;
    if (wait == MK__H2_BODY && (!s->armed || before != wait)) {
        req->rate_since_ms = mk_loop_now_ms(req->http->loop);
        req->rate_bytes = 0;
    }
    mk__h2_wait_enter(s, wait);
}

static void on_timer(struct mk_timer *timer)
{
    struct mk__h2_stream *s = MK_OWNER(timer, struct mk__h2_stream, timer);
    struct mk_request *req = s->req;
    int status = mk__h2_waits[s->wait].overdue;
    s->armed = false;
    if (!req) {
        mk__h2_reset(s, false);
        mk_task_schedule(mk__h2_http(s->h2)->loop, &s->h2->conn->task);
        return;
    }
    if (others_have_their_turn(s)) {
        arm(s);
        return;
    }
    if (s->wait == MK__H2_HANDLER && req->http->app->on_handler_timeout)
        req->http->app->on_handler_timeout(req, req->http->app_ctx);
    if (s->wait == MK__H2_SEND)
        mk__h2_manners_tell(s->h2, MK__H2_UNREAD, req->limits->timeout_ms[MK__TIMEOUT_SEND]);
    req->protocol->wake(req);
    if (!status || req->head_sent) {
        req->failed = req->ended = true;
        return;
    }
    req->body_done = req->body_failed = req->body_discard = true;
    mk_response_error(req, status);
}

void mk__h2_wait_init(struct mk__h2_stream *s)
{
    mk_timer_init(&s->timer, on_timer);
}

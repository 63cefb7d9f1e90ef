// SPDX-License-Identifier: Apache-2.0
/*
 * The turns of an HTTP/2 connection (http/h2/h2.h): reads input, continues the streams, sends output, and finds the
 * connection's state at the end of a turn.
 */
#include "http/h2/h2.h"

#include "http/h2/evict.h"
#include "http/tunnel.h"
#include "loop/loop.h"

#include <assert.h>
#include <errno.h>

enum { TURN_READ_BYTES = 64 * 1024 /* read from one connection per turn */ };

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
        ssize_t n = mk__sock_read(&c->sock, in->data, in->size);
        if (n == -EAGAIN || n == 0)
            break;
        if (n < 0)
            return false;
        mk__conn_note_read(c);
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
    mk__h2_stream_free_ended(h2);
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
    MK_LIST_EACH_ITEM(&h2->streams, struct mk__h2_stream, link, s) {
        if (s->req && s->req->tunnel && !s->req->tunnel->shutdown_notified)
            s->req->ops->wake(s->req);
    }
}

static void begin_shutdown(struct mk__h2 *h2)
{
    const struct mk__context *http = mk__h2_http(h2);
    bool drains = http->shutdown == MK__SHUTDOWN_DRAINING;
    if (mk__context_ends_conns(http))
        notify_tunnels(h2);
    if (drains && is_idle(h2) && h2->shutdown == MK__H2_SHUTDOWN_NONE)
        mk__h2_control_goaway(h2);
    if (!mk__context_keeps_alive(http) || http->settings_version != h2->settings_version)
        mk__h2_control_shutdown_notice(h2);
    if (h2->grace == MK__H2_GRACE_OVER && can_close_idle(h2))
        mk__h2_control_terminate(h2, MK__H2_ERR_NO_ERROR);
}

static void on_grace_timer(struct mk_timer *timer)
{
    struct mk__h2 *h2 = MK_CONTAINER_OF(timer, struct mk__h2, grace_timer);
    h2->grace = MK__H2_GRACE_OVER;
    mk_task_schedule(mk__h2_http(h2)->loop, &h2->conn->task);
}

static enum mk__conn_state run_turn(struct mk__conn *c, struct mk_str in)
{
    struct mk__h2 *h2 = c->proto_data;
    assert(h2 && h2->conn == c);
    h2->turn_again = false;
    if (in.len)
        mk__h2_receive(h2, in);
    if (!receive_input(h2))
        return MK__CONN_CLOSED;
    begin_shutdown(h2);
    step_streams(h2);
    int sent = mk__h2_output_send(h2);
    if (sent == 0 && is_idle(h2) && mk__context_is_low_on_memory(c->http)) {
        mk__h2_control_goaway(h2);
        sent = mk__h2_output_send(h2);
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
    if (!h2) /* the connection lingers */
        return;
    MK_LIST_EACH_ITEM(&h2->streams, const struct mk__h2_stream, link, s) {
        if (mk__h2_stream_states[s->state].waits_for_window && s->req && s->req->response_state != MK__RESPONSE_FAILED)
            mk__h2_flood_log(h2, MK__H2_FLOOD_SEND_TIMEOUT, s->req->limits->timeout_ms[MK__TIMEOUT_SEND]);
    }
}

static enum mk__conn_state on_timeout(struct mk__conn *c)
{
    struct mk__h2 *h2 = c->proto_data;
    mk__h2_control_terminate(h2, MK__H2_ERR_NO_ERROR);
    return end_turn(h2, mk__h2_output_send(h2));
}

static enum mk__conn_state begin_session(struct mk__conn *c, struct mk_str in)
{
    return mk__h2_open(c, on_grace_timer) < 0 ? MK__CONN_CLOSED : run_turn(c, in);
}

/* Clients are notified by a GOAWAY frame. */
static bool announces_change(const struct mk__conn *c, enum mk__conn_change change)
{
    (void)change;
    return c->state != MK__CONN_LINGER;
}

static const struct mk__proto proto = {
    .begin = begin_session,
    .on_ready = on_ready,
    .on_timeout = on_timeout,
    .on_abort = log_send_timeouts,
    .announces = announces_change,
    .close = mk__h2_close,
    .evict = mk__h2_evict_find,
    .close_idle = mk__h2_evict_close_idle,
    .log_totals = mk__h2_flood_log_totals,
    .release = mk__h2_release_shared,
};

const struct mk__proto *mk__h2_find(void)
{
    return &proto;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * The life of a WebSocket: it is opened on a stream, run when the stream can be read or written, and closed.
 *
 *     OPEN ──► CLOSING ──► ENDING ──► ENDED
 *       │         │  the peer's close frame has arrived, or its end, or an error of it: nothing is read any more,
 *       │         │  but what waits is written
 *       │         └─ our close frame is queued, and close_ms runs
 *       └─ the stream has failed, or mk_ws_abort(): ENDED at once
 *
 * ENDED: on_close was called, and the stream is ended. While functions of the WebSocket are on the stack, is_failed and
 * is_freed put off what would free it.
 */
#include "ws.h"

/* ── the end ── */

static void free_ws(struct mk_ws *ws)
{
    struct mk_account *account = ws->worker->account;
    assert(!ws->running && ws->state == MK__WS_ENDED);
    mk_account_free(account, ws->reason, ws->reason_len);
    mk_account_free(account, ws, sizeof(*ws));
}

/* Frees all but the struct, and calls on_close. The stream is not used any more. */
static void finish_ws(struct mk_ws *ws)
{
    const struct mk_ws_handlers *handlers = &ws->settings->handlers;
    assert(ws->state != MK__WS_ENDED);
    ws->state = MK__WS_ENDED;
    mk_timer_cancel(&ws->timer);
    mk__ws_free_input(ws);
    mk__ws_free_queue(ws);
    mk__ws_free_codecs(ws);
    mk__ws_worker_remove(ws);
    ws->running++;
    if (handlers->on_close)
        handlers->on_close(ws, ws->code ? ws->code : MK_WS_ABNORMAL, mk_str(ws->reason, ws->reason_len), ws->ctx);
    ws->running--;
}

static void end_stream(struct mk_ws *ws)
{
    const struct mk_ws_stream_ops *ops = ws->ops;
    void *stream = ws->stream;
    finish_ws(ws);
    ws->is_freed = true;
    ops->end(stream);
}

/* Remembers what on_close gets; the first call counts. */
static void set_code(struct mk_ws *ws, unsigned code, struct mk_str reason)
{
    if (ws->code)
        return;
    ws->code = (uint16_t)(code ? code : MK_WS_NO_STATUS);
    size_t n = reason.len < MK__WS_REASON_BYTES_MAX ? reason.len : MK__WS_REASON_BYTES_MAX;
    ws->reason = n ? mk_account_alloc(ws->worker->account, n) : NULL;
    if (ws->reason) {
        memcpy(ws->reason, reason.p, n);
        ws->reason_len = (uint8_t)n;
    }
}

void mk__ws_set_failed(struct mk_ws *ws)
{
    if (ws->is_failed || ws->state == MK__WS_ENDED)
        return;
    ws->is_failed = true;
    if (!ws->running)
        ws->ops->wake(ws->stream); /* not within a call of the owner, which may use it after the call */
}

void mk__ws_fail_stream(struct mk_ws *ws, const char *reason)
{
    set_code(ws, MK_WS_ABNORMAL, mk_str_c(reason));
    mk__ws_set_failed(ws);
}

/* ── closing ── */

static uint32_t value_or(uint32_t value, uint32_t fallback)
{
    return value ? value : fallback;
}

/* Queues a close frame: from now on nothing else is sent. */
static void queue_close(struct mk_ws *ws, unsigned code, struct mk_str reason)
{
    uint8_t payload[MK__WS_CONTROL_BYTES_MAX];
    size_t n = mk__ws_close_write(payload, (uint16_t)(code ? code : MK_WS_NO_STATUS), reason);
    ws->state = MK__WS_CLOSING;
    if (mk__ws_send_frame(ws, MK__WS_OP_CLOSE, false, payload, n) < 0)
        mk__ws_set_failed(ws); /* the queue is full of what the peer does not read, or there is no memory */
}

/* Limits the time until the peer has answered, or has taken what waits. */
static void limit_close(struct mk_ws *ws)
{
    mk_timer_arm(ws->worker->loop, &ws->timer, value_or(ws->settings->close_ms, MK__WS_CLOSE_MS));
}

static void send_close(struct mk_ws *ws, unsigned code, struct mk_str reason)
{
    queue_close(ws, code, reason);
    limit_close(ws);
}

static bool may_send_close(const struct mk_ws *ws)
{
    return !ws->is_client || ws->is_opened; /* in a client's handshake no frame can be sent */
}

void mk_ws_close(struct mk_ws *ws, unsigned code, struct mk_str reason)
{
    if (ws->state != MK__WS_OPEN)
        return;
    ws->cause = MK_WS_CAUSE_LOCAL;
    set_code(ws, code, reason);
    if (!may_send_close(ws)) {
        mk__ws_set_failed(ws);
        return;
    }
    send_close(ws, code, reason);
    mk_ws_resume(ws); /* the peer's close frame is read */
    if (!ws->running)
        ws->ops->wake(ws->stream);
}

/* Nothing more is read. The WebSocket ends when the queue is empty. */
static void stop_reading(struct mk_ws *ws)
{
    ws->state = MK__WS_ENDING;
    mk__ws_free_input(ws);
}

void mk__ws_take_close(struct mk_ws *ws, unsigned code, struct mk_str reason)
{
    if (ws->state == MK__WS_OPEN) {
        ws->cause = MK_WS_CAUSE_PEER;
        set_code(ws, code, reason);
        send_close(ws, code == MK_WS_NO_STATUS ? 0 : code, MK_STR_NONE);
    }
    stop_reading(ws);
}

void mk__ws_fail(struct mk_ws *ws, unsigned code, const char *reason)
{
    if (ws->state == MK__WS_OPEN) {
        ws->cause = MK_WS_CAUSE_ERROR;
        set_code(ws, code, mk_str_c(reason));
        send_close(ws, code, mk_str_c(reason));
    }
    stop_reading(ws);
}

void mk__ws_take_end(struct mk_ws *ws)
{
    if (ws->state == MK__WS_OPEN) {
        set_code(ws, MK_WS_ABNORMAL, MK_STR_NONE);
        limit_close(ws);
    }
    stop_reading(ws);
}

void mk_ws_abort(struct mk_ws *ws)
{
    if (ws->state == MK__WS_ENDED)
        return;
    mk__ws_enter(ws);
    if (ws->state == MK__WS_OPEN)
        ws->cause = MK_WS_CAUSE_LOCAL;
    ws->is_failed = true;
    mk__ws_leave(ws);
}

void mk_ws_end(struct mk_ws *ws, unsigned code, struct mk_str reason)
{
    if (ws->state == MK__WS_ENDED)
        return;
    mk__ws_enter(ws);
    if (ws->state == MK__WS_OPEN) {
        ws->cause = MK_WS_CAUSE_LOCAL;
        set_code(ws, code, reason);
        if (may_send_close(ws))
            queue_close(ws, code, reason);
    }
    mk_ws_abort(ws);
    mk__ws_leave(ws);
}

/* ── turns ── */

void mk__ws_enter(struct mk_ws *ws)
{
    assert(ws->running < UINT8_MAX);
    ws->running++;
}

/* Tells whether everything was said: the close frames are exchanged, and ours is written. */
static bool is_done(const struct mk_ws *ws)
{
    return ws->is_failed || (ws->state == MK__WS_ENDING && !ws->queue);
}

void mk__ws_leave(struct mk_ws *ws)
{
    assert(ws->running);
    if (--ws->running)
        return;
    if (ws->state != MK__WS_ENDED && is_done(ws))
        end_stream(ws);
    if (ws->is_freed)
        free_ws(ws);
}

static void write_more(struct mk_ws *ws)
{
    const struct mk_ws_handlers *handlers = &ws->settings->handlers;
    if (!mk__ws_write_queue(ws) || !ws->wants_writable || ws->state != MK__WS_OPEN)
        return;
    ws->wants_writable = false;
    if (handlers->on_writable)
        handlers->on_writable(ws, ws->ctx);
}

void mk_ws_run(struct mk_ws *ws, unsigned events)
{
    struct mk_ws_worker *w = ws->worker;
    mk__ws_enter(ws);
    mk__ws_gather_output(ws);
    ws->is_readable |= (events & MK_TUNNEL_READ) != 0;
    if (events & MK_TUNNEL_WRITE) {
        ws->is_writable = true;
        write_more(ws);
    }
    if (!ws->is_opened && ws->state == MK__WS_OPEN) {
        ws->is_opened = true;
        if (ws->settings->handlers.on_open)
            ws->settings->handlers.on_open(ws, ws->ctx);
    }
    mk__ws_read(ws);
    if (events & MK_TUNNEL_DRAINING)
        mk_ws_close(ws, MK_WS_GOING_AWAY, MK_STR_NONE);
    mk__ws_flush_output(w);
    if (ws->is_readable && !ws->is_paused && ws->state <= MK__WS_CLOSING)
        ws->ops->wake(ws->stream);
    mk__ws_leave(ws);
}

void mk_ws_lost(struct mk_ws *ws)
{
    if (ws->state != MK__WS_ENDED)
        finish_ws(ws);
    ws->is_freed = true;
    if (!ws->running)
        free_ws(ws);
}

void mk__ws_discard(struct mk_ws *ws)
{
    mk_timer_cancel(&ws->timer);
    mk__ws_worker_remove(ws);
    ws->state = MK__WS_ENDED;
    free_ws(ws);
}

/* ── time ── */

/* Returns how long nothing may be received before a ping is sent. */
static uint32_t get_ping_ms(const struct mk_ws *ws)
{
    return value_or(ws->settings->ping_ms, MK__WS_PING_MS);
}

static void send_ping(struct mk_ws *ws)
{
    ws->has_pinged = true;
    mk__ws_send_frame(ws, MK__WS_OP_PING, false, NULL, 0);
    mk_timer_arm(ws->worker->loop, &ws->timer, value_or(ws->settings->pong_ms, MK__WS_PONG_MS));
}

/* Asks a peer that has sent nothing for some time, or ends the WebSocket, if it was asked. */
static void keep_alive(struct mk_ws *ws)
{
    struct mk_loop *loop = ws->worker->loop;
    uint64_t idle = mk_loop_now_ms(loop) - ws->received_ms;
    uint32_t ping_ms = get_ping_ms(ws);
    if (ws->has_pinged && !ws->is_paused) {
        ws->cause = MK_WS_CAUSE_TIMEOUT;
        mk__ws_set_failed(ws);
    } else if (idle >= ping_ms)
        send_ping(ws);
    else
        mk_timer_arm(loop, &ws->timer, (uint32_t)(ping_ms - idle));
}

static void begin_keep_alive(struct mk_ws *ws)
{
    uint32_t ping_ms = get_ping_ms(ws);
    ws->received_ms = mk_loop_now_ms(ws->worker->loop);
    mk_timer_arm(ws->worker->loop, &ws->timer, ping_ms < UINT32_MAX ? ping_ms : MK__WS_PING_MS);
}

/* The timer of an open WebSocket. */
static void take_turn(struct mk_ws *ws)
{
    mk__ws_shrink_codecs(ws);
    if (get_ping_ms(ws) < UINT32_MAX)
        keep_alive(ws);
    else
        mk_timer_arm(ws->worker->loop, &ws->timer, MK__WS_PING_MS);
}

static void take_time(void *arg)
{
    struct mk_ws *ws = arg;
    mk__ws_enter(ws);
    if (ws->state == MK__WS_OPEN)
        take_turn(ws);
    else
        ws->is_failed = true; /* the peer does not answer the close frame */
    mk__ws_leave(ws);
}

static void on_timer(struct mk_timer *timer)
{
    struct mk_ws *ws = MK_CONTAINER_OF(timer, struct mk_ws, timer);
    mk__ws_call(ws->worker, take_time, ws);
}

/* ── the rest of the interface ── */

void mk_ws_pause(struct mk_ws *ws)
{
    ws->is_paused = ws->state == MK__WS_OPEN;
}

void mk_ws_resume(struct mk_ws *ws)
{
    if (!ws->is_paused)
        return;
    ws->is_paused = false;
    ws->is_readable = true; /* of what was read before, something may be left */
    ws->has_pinged = false; /* its pong may not have been read yet */
    ws->received_ms = mk_loop_now_ms(ws->worker->loop);
    if (ws->state != MK__WS_ENDED)
        ws->ops->wake(ws->stream);
}

struct mk_str mk_ws_protocol(const struct mk_ws *ws)
{
    return ws->protocol;
}

struct mk_ws_worker *mk_ws_get_worker(const struct mk_ws *ws)
{
    return ws->worker;
}

bool mk_ws_is_utf8(const void *data, size_t len)
{
    return mk__utf8_is_valid(data, len);
}

enum mk_ws_cause mk_ws_get_cause(const struct mk_ws *ws)
{
    return (enum mk_ws_cause)ws->cause;
}

void *mk_ws_ctx(const struct mk_ws *ws)
{
    return ws->ctx;
}

static void set_negotiated(struct mk_ws *ws, const struct mk_ws_negotiated *negotiated)
{
    ws->is_client = negotiated->is_client;
    ws->deflate = negotiated->deflate;
    ws->send_context = negotiated->send_context;
    ws->receive_context = negotiated->receive_context;
    ws->send_bits = negotiated->send_bits;
    ws->receive_bits = negotiated->receive_bits;
    ws->protocol = negotiated->protocol;
}

void mk__ws_negotiate_late(struct mk_ws *ws, const struct mk_ws_negotiated *negotiated)
{
    set_negotiated(ws, negotiated);
    mk__ws_worker_count_deflate(ws);
    begin_keep_alive(ws);
}

struct mk_ws *mk_ws_open(struct mk_ws_worker *worker, const struct mk_ws_settings *settings,
                         const struct mk_ws_negotiated *negotiated, int channel, void *ctx,
                         const struct mk_ws_stream_ops *ops, void *stream)
{
    struct mk_ws *ws = mk_account_alloc(worker->account, sizeof(*ws));
    if (!ws)
        return NULL;
    *ws = (struct mk_ws){.worker = worker, .settings = settings, .ops = ops, .stream = stream, .ctx = ctx};
    set_negotiated(ws, negotiated);
    mk_timer_init(&ws->timer, on_timer);
    if (mk__ws_worker_add(worker, ws, channel) < 0) {
        mk_account_free(worker->account, ws, sizeof(*ws));
        return NULL;
    }
    if (!ws->is_client)
        begin_keep_alive(ws);
    return ws;
}

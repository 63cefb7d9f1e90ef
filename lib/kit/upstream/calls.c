// SPDX-License-Identifier: Apache-2.0
/*
 * Calls of a connection: written together at the end of a turn, matched with what is received, ended at their
 * deadlines (<monkey/kit/upstream.h>).
 */
#include "upstream.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

enum {
    WRITE_CALLS = 64, /* in one system call */
    READS_PER_EVENT = 16,
};

static uint64_t now_ms(const struct mk_upstream_conn *conn)
{
    return mk_loop_now_ms(conn->server->pool->loop);
}

static bool is_connected(const struct mk_upstream_conn *conn)
{
    return conn->state == MK_UPSTREAM_READY || conn->state == MK_UPSTREAM_HANDSHAKE;
}

/* ── one call ── */

void mk_upstream_call_init(struct mk_upstream_call *call, struct mk_str bytes)
{
    *call = (struct mk_upstream_call){.bytes = bytes, .has_reply = true};
    mk_list_init(&call->node);
    mk_list_init(&call->by_time);
}

void mk_upstream_take(struct mk_upstream_conn *conn, struct mk_upstream_call *call)
{
    mk_list_del(&call->node);
    mk_list_del(&call->by_time);
    if (call->is_counted) /* its bytes are not needed any more */
        conn->queue_bytes -= call->bytes.len;
    call->is_counted = false;
    conn->n_calls -= call->has_reply;
}

static void free_call(struct mk_upstream_conn *conn, struct mk_upstream_call *call)
{
    mk_upstream_take(conn, call);
    conn->protocol->free(conn, call);
}

/* Tells an error, once; the call may stay in its list. */
static void report_error(struct mk_upstream_conn *conn, struct mk_upstream_call *call, int err, const char *text)
{
    if (call->has_result)
        return;
    call->has_result = true;
    if (call->has_reply)
        conn->protocol->done(conn, call, err, text);
}

void mk__upstream_fail_calls(struct mk_upstream_conn *conn, struct mk_list *calls, int err, const char *text)
{
    while (!mk_list_empty(calls)) {
        struct mk_upstream_call *call = MK_LIST_FIRST(calls, struct mk_upstream_call, node);
        mk_list_del(&call->node);
        report_error(conn, call, err, text);
        free_call(conn, call);
    }
}

struct mk_upstream_call *mk_upstream_first(const struct mk_upstream_conn *conn)
{
    return mk_list_empty(&conn->sent) ? NULL : MK_LIST_FIRST(&conn->sent, struct mk_upstream_call, node);
}

/* ── writing ── */

static void watch_events(struct mk_upstream_conn *conn, uint32_t events)
{
    if (conn->events != events && mk_event_change(conn->server->pool->loop, &conn->event, events) == 0)
        conn->events = events;
}

static struct mk_list *get_queue(struct mk_upstream_conn *conn)
{
    return conn->state == MK_UPSTREAM_HANDSHAKE ? &conn->handshake_calls : &conn->waiting;
}

/* Collects what is to be written. Returns the number of pieces. */
static unsigned collect_pieces(struct mk_upstream_conn *conn, struct iovec pieces[WRITE_CALLS], size_t *ret_bytes)
{
    const struct mk_list *queue = get_queue(conn);
    unsigned n = 0;
    *ret_bytes = 0;
    for (struct mk_list *at = queue->next; at != queue && n < WRITE_CALLS; at = at->next, n++) {
        const struct mk_upstream_call *call = MK_CONTAINER_OF(at, struct mk_upstream_call, node);
        size_t skip = n == 0 ? conn->written : 0;
        pieces[n] = (struct iovec){(void *)(uintptr_t)(call->bytes.p + skip), call->bytes.len - skip};
        *ret_bytes += call->bytes.len - skip;
    }
    return n;
}

/* Moves calls that were written whole. */
static void take_written(struct mk_upstream_conn *conn, size_t n)
{
    struct mk_list *queue = get_queue(conn);
    conn->written += n;
    while (!mk_list_empty(queue)) {
        struct mk_upstream_call *call = MK_LIST_FIRST(queue, struct mk_upstream_call, node);
        if (conn->written < call->bytes.len)
            break;
        conn->written -= call->bytes.len;
        mk_list_del(&call->node);
        call->is_sent = true;
        if (call->has_reply)
            mk_list_add(&conn->sent, &call->node);
        else
            free_call(conn, call);
    }
    if (conn->written)
        MK_LIST_FIRST(queue, struct mk_upstream_call, node)->is_sent = true;
}

static void write_calls(struct mk_upstream_conn *conn)
{
    struct iovec pieces[WRITE_CALLS];
    size_t bytes;
    unsigned n;
    while ((n = collect_pieces(conn, pieces, &bytes)) > 0) {
        struct msghdr message = {.msg_iov = pieces, .msg_iovlen = n};
        ssize_t done = sendmsg(conn->event.fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (done < 0 && errno != EAGAIN && errno != EINTR) {
            mk_upstream_fail(conn, -EPIPE, "the connection was lost", false);
            return;
        }
        take_written(conn, done < 0 ? 0 : (size_t)done);
        if (done < 0 || (size_t)done < bytes) {
            watch_events(conn, EPOLLIN | EPOLLOUT);
            return;
        }
    }
    watch_events(conn, EPOLLIN);
}

static void do_flush(struct mk_upstream_conn *conn, int64_t unused)
{
    (void)unused;
    if (is_connected(conn))
        write_calls(conn);
}

static void on_flush(struct mk_task *task)
{
    mk__upstream_enter(MK_CONTAINER_OF(task, struct mk_upstream_conn, flush), do_flush, 0);
}

/* ── reading ── */

static void handle_end(struct mk_upstream_conn *conn, ssize_t n)
{
    const struct mk_upstream_protocol *protocol = conn->protocol;
    bool has_worked = conn->has_replied || mk_list_empty(&conn->waiting); /* else it may be so each time */
    bool is_idle = conn->state == MK_UPSTREAM_READY && has_worked && mk_list_empty(&conn->sent) && n == 0;
    if (is_idle && !conn->written && !protocol->is_single && !protocol->is_lasting)
        mk__upstream_close_idle(conn);
    else
        mk_upstream_fail(conn, -EPIPE, n == 0 ? "the server has closed the connection" : "the connection was lost",
                         false);
}

static void read_replies(struct mk_upstream_conn *conn)
{
    char *buffer = conn->server->pool->buffer;
    uint64_t serial = conn->serial;
    for (unsigned i = 0; i < READS_PER_EVENT; i++) {
        ssize_t n = recv(conn->event.fd, buffer, MK_UPSTREAM_READ_BYTES, MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n <= 0) {
            handle_end(conn, n);
            return;
        }
        conn->received_ms = now_ms(conn);
        conn->protocol->feed(conn, buffer, (size_t)n);
        if (conn->serial != serial || n < MK_UPSTREAM_READ_BYTES)
            return;
    }
}

static void do_event(struct mk_upstream_conn *conn, int64_t events)
{
    uint64_t serial = conn->serial;
    if (events & EPOLLOUT)
        write_calls(conn);
    if (conn->serial == serial && events & ~(int64_t)EPOLLOUT)
        read_replies(conn);
}

static void on_event(struct mk_event *event, uint32_t events)
{
    mk__upstream_enter(MK_CONTAINER_OF(event, struct mk_upstream_conn, event), do_event, events);
}

/* ── deadlines ── */

/* Gives a call time from now on: its deadline is after those of all others. */
static void arm_call(struct mk_upstream_conn *conn, struct mk_upstream_call *call)
{
    uint32_t ms = conn->server->options->timeout_ms;
    call->deadline_ms = now_ms(conn) + ms;
    mk_list_add(&conn->pending, &call->by_time);
    if (!conn->is_timer_armed)
        mk_timer_arm(conn->server->pool->loop, &conn->timer, ms);
    conn->is_timer_armed = true;
}

/* Tells a call that its time is over. One that the server may have stays in its list, for the reply. */
static void time_out(struct mk_upstream_conn *conn, struct mk_upstream_call *call)
{
    const struct mk_upstream_options *o = conn->server->options;
    int err = conn->server->err && !is_connected(conn) ? conn->server->err : -ETIMEDOUT;
    char text[MK_UPSTREAM_TEXT_BYTES];
    if (err == -ETIMEDOUT)
        snprintf(text, sizeof(text), "%s %.*s: no reply within %u ms", o->name, MK_STR_ARG(o->target->text),
                 o->timeout_ms);
    else
        memcpy(text, conn->server->text, sizeof(text));
    if (!call->is_sent) {
        mk_upstream_take(conn, call);
        report_error(conn, call, err, text);
        conn->protocol->free(conn, call);
        return;
    }
    mk_list_del(&call->by_time);
    if (!o->closes_late || conn->received_ms <= call->since_ms)
        conn->timeouts++;
    if (o->closes_late)
        arm_call(conn, call);
    report_error(conn, call, err, text); /* after it the call may be gone */
}

static void do_timer(struct mk_upstream_conn *conn, int64_t unused)
{
    uint64_t now = now_ms(conn), next = 0, serial = conn->serial;
    bool is_late = false;
    (void)unused;
    while (!mk_list_empty(&conn->pending) && !is_late) {
        struct mk_upstream_call *call = MK_LIST_FIRST(&conn->pending, struct mk_upstream_call, by_time);
        next = call->deadline_ms;
        if (next > now)
            break;
        is_late = call->has_result;
        if (!is_late)
            time_out(conn, call);
    }
    if (conn->serial == serial && (is_late || conn->timeouts >= conn->server->options->timeouts_max))
        mk_upstream_fail(conn, -ETIMEDOUT, "it does not reply", false);
    conn->is_timer_armed = !mk_list_empty(&conn->pending);
    if (conn->is_timer_armed)
        mk_timer_arm(conn->server->pool->loop, &conn->timer, next > now ? (uint32_t)(next - now) : 1);
}

static void on_timer(struct mk_timer *timer)
{
    mk__upstream_enter(MK_CONTAINER_OF(timer, struct mk_upstream_conn, timer), do_timer, 0);
}

/* ── sending ── */

/* Adds a call to a list of those that are to be written. */
static void add_call(struct mk_upstream_conn *conn, struct mk_list *queue, struct mk_upstream_call *call)
{
    mk_list_add(queue, &call->node);
    conn->n_calls += call->has_reply;
    conn->queue_bytes += call->bytes.len;
    call->is_counted = true;
    call->since_ms = now_ms(conn);
    if (call->has_reply)
        arm_call(conn, call);
}

int mk_upstream_send(struct mk_upstream_conn *conn, struct mk_upstream_call *call)
{
    struct mk_upstream *server = conn->server;
    const struct mk_upstream_options *o = server->options;
    bool is_down = server->down_until_ms > now_ms(conn) ||
                   (o->fails_while_dialing && server->failures && conn->state == MK_UPSTREAM_DIALING);
    if (conn->n_calls >= o->pending_max || conn->queue_bytes + call->bytes.len > o->queue_bytes_max) {
        snprintf(server->text, sizeof(server->text), "%s %.*s: %u calls of this worker with %zu bytes wait for replies",
                 o->name, MK_STR_ARG(o->target->text), conn->n_calls, conn->queue_bytes);
        return -EBUSY;
    }
    if (is_down && !is_connected(conn) && mk__upstream_is_wait_timed_out(server))
        return server->err;
    add_call(conn, &conn->waiting, call);
    if (conn->state == MK_UPSTREAM_READY)
        mk_task_schedule(server->pool->loop, &conn->flush);
    else
        mk_upstream_connect(conn);
    return 0;
}

void mk_upstream_handshake(struct mk_upstream_conn *conn, struct mk_upstream_call *call)
{
    assert(conn->state == MK_UPSTREAM_HANDSHAKE);
    add_call(conn, &conn->handshake_calls, call);
    conn->n_handshake_calls++;
}

void mk__upstream_io_init(struct mk_upstream_conn *conn)
{
    conn->event = (struct mk_event){.ready = on_event, .fd = -1};
    mk_timer_init(&conn->timer, on_timer);
    mk_task_init(&conn->flush, on_flush);
}

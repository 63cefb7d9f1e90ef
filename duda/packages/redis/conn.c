// SPDX-License-Identifier: Apache-2.0
/*
 * A connection to a Redis server (conn.h).
 */
#include "conn.h"

#include "format.h"
#include "redis.h"
#include "status.h"

#include <duda/mem.h>
#include <duda/msg.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
    QUEUE_BYTES_MAX = 64 << 20, /* of commands that were not written */
    WRITE_CALLS = 64,           /* in one system call */
    READS_OF_AN_EVENT = 16,
    TIMEOUTS_MAX = 3, /* in a row, before the connection is made anew */
    BACKOFF_MS = 50,
    BACKOFF_MS_MAX = 1000,
    LOG_INTERVAL_MS = 10000,
};

/* ── calls ── */

struct redis_call *redis_call_new(size_t len, redis_done_fn done, void *owner)
{
    struct redis_call *call = mem->alloc(sizeof(*call) + len);
    if (!call)
        return NULL;
    *call = (struct redis_call){.done = done, .owner = owner, .replies = 1, .len = len};
    mk_list_init(&call->node);
    mk_list_init(&call->by_time);
    return call;
}

static void free_call(struct redis_call *call)
{
    mem->free(call->refusal);
    mem->free(call);
}

/* It does not wait to be written any more. */
static void uncount(struct redis_conn *conn, struct redis_call *call)
{
    if (call->is_counted)
        conn->bytes -= call->len;
    call->is_counted = false;
}

/* Removes a call from the connection's lists and frees it. */
static void remove_call(struct redis_conn *conn, struct redis_call *call)
{
    mk_list_del(&call->node);
    mk_list_del(&call->by_time);
    uncount(conn, call);
    if (call->replies)
        redis_part_count(conn->part, REDIS_WAITING, -1);
    conn->n_calls -= call->replies > 0;
    free_call(call);
}

/* Tells what has become of a call; it may stay in its list. */
static void report_result(struct redis_conn *conn, struct redis_call *call, struct redis_result *result)
{
    redis_done_fn done = call->done;
    call->done = NULL;
    result->command = mk_str(call->bytes, call->len);
    result->has_ended = conn->part->is_stopping;
    if (result->err < 0 && !mk_list_empty(&call->by_time)) /* else it was counted when its time was over */
        redis_part_count(conn->part, REDIS_ERRORS, 1);
    mk_list_del(&call->by_time);
    if (done)
        done(call->owner, result);
    else
        mem->free(result->reply);
}

static void tell(struct redis_conn *conn, struct redis_call *call, int err, const char *text)
{
    report_result(conn, call, &(struct redis_result){.err = err, .text = text});
}

/* Tells an error to all calls of a list, and frees them. What they begin meanwhile is in other lists. */
static void fail_calls(struct redis_conn *conn, struct mk_list *calls, int err, const char *text)
{
    while (!mk_list_empty(calls)) {
        struct redis_call *call = MK_LIST_FIRST(calls, struct redis_call, node);
        mk_list_del(&call->node);
        tell(conn, call, err, text);
        remove_call(conn, call);
    }
}

/* ── closing ── */

static uint64_t now_ms(const struct redis_conn *conn)
{
    return mk_loop_now_ms(conn->part->loop);
}

static void close_fd(struct redis_conn *conn, bool has_loop)
{
    if (conn->event.fd >= 0) {
        if (has_loop)
            mk_event_del(conn->part->loop, &conn->event);
        close(conn->event.fd);
    }
    conn->event.fd = -1;
    conn->serial++;
    conn->written = 0;
    conn->greetings = 0;
    conn->timeouts = 0;
    redis_reader_release(&conn->reader);
}

static void set_error(struct redis_conn *conn, int err, const char *text)
{
    conn->err = err;
    snprintf(conn->text, sizeof(conn->text), "Redis %.*s: %s", MK_STR_ARG(conn->server->target->text), text);
}

/* Returns whether there was no connection for so long that commands do not wait for one. */
static bool has_failed_long(const struct redis_conn *conn)
{
    return conn->failed_ms && now_ms(conn) - conn->failed_ms >= conn->server->timeout_ms;
}

/* Waits before the next dial, with a delay that no two workers have in common. */
static void back_off(struct redis_conn *conn)
{
    unsigned shift = conn->failures < 6 ? conn->failures : 6;
    uint32_t delay_ms = BACKOFF_MS / 2 << shift;
    if (delay_ms > BACKOFF_MS_MAX)
        delay_ms = BACKOFF_MS_MAX;
    delay_ms = delay_ms / 2 + redis_part_random(conn->part) % (delay_ms / 2 + 1);
    conn->state = REDIS_BACKOFF;
    mk_timer_arm(conn->part->loop, &conn->retry, delay_ms);
}

/* Logs a failure, unless the last line about one was just written: a server may accept and close again and again. */
static void log_failure(struct redis_conn *conn)
{
    uint64_t now = now_ms(conn);
    if (conn->is_logged || (conn->logged_ms && now - conn->logged_ms < LOG_INTERVAL_MS))
        return;
    conn->is_logged = true;
    conn->logged_ms = now;
    msg->warn("%s; it is tried again until the server replies", conn->text);
}

/* A command of which only a part was written is sent again: the server does not carry it out. */
static void take_back_part(struct redis_conn *conn, struct mk_list *lost)
{
    if (!conn->written || mk_list_empty(&conn->waiting))
        return;
    struct redis_call *call = MK_LIST_FIRST(&conn->waiting, struct redis_call, node);
    call->is_sent = false;
    if (call->done)
        return;
    mk_list_del(&call->node); /* its time was over */
    mk_list_add(lost, &call->node);
}

/* The connection has failed, and is made again after a while. Commands that were not sent wait for it. */
static void fail_conn(struct redis_conn *conn, int err, const char *text, bool fails_waiting)
{
    struct mk_list lost, unsent;
    mk_list_init(&lost);
    mk_list_init(&unsent);
    mk_dial_cancel(&conn->dial);
    mk_list_join(&lost, &conn->sent);
    if (conn->state != REDIS_GREETING)
        take_back_part(conn, &lost);
    mk_list_join(&lost, &conn->greeting);
    close_fd(conn, true);
    set_error(conn, err, text);
    conn->failures++;
    if (!conn->failed_ms)
        conn->failed_ms = now_ms(conn);
    if (fails_waiting || has_failed_long(conn) || conn->role->is_single)
        mk_list_join(&unsent, &conn->waiting);
    if (conn->role->is_single)
        conn->state = REDIS_IDLE;
    else
        back_off(conn);
    log_failure(conn);
    char copy[REDIS_TEXT_BYTES];
    memcpy(copy, conn->text, sizeof(copy));
    fail_calls(conn, &lost, err, copy);
    fail_calls(conn, &unsent, err, copy);
    if (conn->role->on_down)
        conn->role->on_down(conn);
}

void redis_conn_fail(struct redis_conn *conn, int err, const char *text)
{
    fail_conn(conn, err, text, false);
}

/* The server has closed a connection that was not in use. */
static void close_idle(struct redis_conn *conn)
{
    close_fd(conn, true);
    conn->state = REDIS_IDLE;
    if (!mk_list_empty(&conn->waiting))
        redis_conn_open(conn);
}

/* ── writing ── */

static void watch(struct redis_conn *conn, uint32_t events)
{
    if (conn->events != events && mk_event_change(conn->part->loop, &conn->event, events) == 0)
        conn->events = events;
}

static struct mk_list *get_queue(struct redis_conn *conn)
{
    return conn->state == REDIS_GREETING ? &conn->greeting : &conn->waiting;
}

/* Collects what is to be written. Returns the number of pieces. */
static int collect(struct redis_conn *conn, struct iovec pieces[WRITE_CALLS], size_t *ret_bytes)
{
    int n = 0;
    struct mk_list *queue = get_queue(conn);
    *ret_bytes = 0;
    for (struct mk_list *at = queue->next; at != queue && n < WRITE_CALLS; at = at->next, n++) {
        struct redis_call *call = MK_CONTAINER_OF(at, struct redis_call, node);
        size_t skip = n == 0 ? conn->written : 0;
        pieces[n] = (struct iovec){call->bytes + skip, call->len - skip};
        *ret_bytes += call->len - skip;
    }
    return n;
}

/* Moves calls that were written whole. */
static void take_written(struct redis_conn *conn, size_t n)
{
    struct mk_list *queue = get_queue(conn);
    conn->written += n;
    while (!mk_list_empty(queue)) {
        struct redis_call *call = MK_LIST_FIRST(queue, struct redis_call, node);
        if (conn->written < call->len)
            break;
        conn->written -= call->len;
        mk_list_del(&call->node);
        uncount(conn, call);
        call->is_sent = true;
        if (call->replies)
            mk_list_add(&conn->sent, &call->node);
        else
            remove_call(conn, call);
    }
    if (conn->written)
        MK_LIST_FIRST(queue, struct redis_call, node)->is_sent = true;
}

static void write_calls(struct redis_conn *conn)
{
    struct iovec pieces[WRITE_CALLS];
    size_t bytes;
    int n;
    while ((n = collect(conn, pieces, &bytes)) > 0) {
        struct msghdr message = {.msg_iov = pieces, .msg_iovlen = (size_t)n};
        ssize_t done = sendmsg(conn->event.fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (done < 0 && (errno == EAGAIN || errno == EINTR))
            done = 0;
        if (done < 0) {
            fail_conn(conn, -EPIPE, "the connection was lost", false);
            return;
        }
        take_written(conn, (size_t)done);
        if ((size_t)done < bytes) {
            watch(conn, EPOLLIN | EPOLLOUT);
            return;
        }
    }
    watch(conn, EPOLLIN);
}

static void do_flush(void *data)
{
    struct redis_conn *conn = data;
    if (conn->state == REDIS_READY || conn->state == REDIS_GREETING)
        write_calls(conn);
}

static void on_flush(struct mk_task *task)
{
    struct redis_conn *conn = MK_CONTAINER_OF(task, struct redis_conn, flush);
    duda_package_loader->call(conn->part->base, do_flush, conn);
}

/* ── reading ── */

/* The server works: what failed before is over. */
static void note_reply(struct redis_conn *conn)
{
    conn->timeouts = 0;
    conn->has_replied = true;
    if (!conn->failures)
        return;
    conn->failures = 0;
    conn->failed_ms = 0;
    conn->err = 0;
    redis_part_count(conn->part, REDIS_RECONNECTS, 1);
    if (conn->is_logged)
        msg->info("Redis %.*s: connected again", MK_STR_ARG(conn->server->target->text));
    conn->is_logged = false;
}

/* Tells a reply that may be an error. */
static void report_reply(struct redis_conn *conn, struct redis_call *call, redisReply *reply)
{
    struct redis_result result = {.reply = reply};
    bool is_error = reply->type == REDIS_REPLY_ERROR;
    if (is_error)
        result = (struct redis_result){.err = redis_status_of(reply->str), .text = reply->str, .refusal = reply};
    report_result(conn, call, &result);
    if (is_error)
        mem->free(reply);
}

/* One of the replies to a transaction: those before the last one are +QUEUED or errors. Returns the one to tell. */
static redisReply *take_part(struct redis_call *call, redisReply *reply)
{
    if (call->replies > 0) {
        bool keeps = reply->type == REDIS_REPLY_ERROR && !call->refusal;
        if (keeps)
            call->refusal = reply;
        else
            mem->free(reply);
        return NULL;
    }
    if (!call->refusal)
        return reply;
    mem->free(reply);
    reply = call->refusal;
    call->refusal = NULL;
    return reply;
}

static void match_reply(struct redis_conn *conn, redisReply *reply)
{
    if (mk_list_empty(&conn->sent)) {
        bool is_error = reply->type == REDIS_REPLY_ERROR;
        fail_conn(conn, is_error ? redis_status_of(reply->str) : -EPROTO,
                  is_error ? reply->str : "the server has sent a reply without a command", true);
        mem->free(reply);
        return;
    }
    struct redis_call *call = MK_LIST_FIRST(&conn->sent, struct redis_call, node);
    call->replies--;
    reply = take_part(call, reply);
    if (!reply)
        return;
    mk_list_del(&call->node);
    conn->n_calls--;
    redis_part_count(conn->part, REDIS_WAITING, -1);
    report_reply(conn, call, reply);
    remove_call(conn, call);
}

/* Handles what was read. Returns whether the connection is still the same. */
static bool handle_replies(struct redis_conn *conn)
{
    uint64_t serial = conn->serial;
    redisReply *reply = NULL;
    int result = 0;
    while (conn->serial == serial && (result = redis_reader_next(&conn->reader, &reply)) > 0) {
        bool is_taken = false;
        note_reply(conn);
        if (conn->state == REDIS_READY && conn->role->on_reply)
            is_taken = conn->role->on_reply(conn, reply);
        if (!is_taken && conn->serial == serial)
            match_reply(conn, reply);
    }
    if (conn->serial == serial && result < 0) {
        char text[sizeof(conn->reader.text)];
        snprintf(text, sizeof(text), "%s", conn->reader.error);
        fail_conn(conn, result, text, false);
    }
    return conn->serial == serial;
}

static void handle_end(struct redis_conn *conn, ssize_t n)
{
    bool is_idle = conn->has_replied && mk_list_empty(&conn->sent) && conn->state == REDIS_READY && n == 0;
    if (is_idle && !conn->written && !conn->role->is_single && !conn->role->is_lasting)
        close_idle(conn);
    else
        fail_conn(conn, -EPIPE, n == 0 ? "the server has closed the connection" : "the connection was lost", false);
}

static void read_replies(struct redis_conn *conn)
{
    size_t size;
    char *buffer = redis_part_buffer(conn->part, &size);
    for (unsigned i = 0; i < READS_OF_AN_EVENT; i++) {
        ssize_t n = recv(conn->event.fd, buffer, size, MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n <= 0) {
            handle_end(conn, n);
            return;
        }
        if (redis_reader_feed(&conn->reader, buffer, (size_t)n) < 0) {
            fail_conn(conn, -ENOMEM, "no memory for the reply", false);
            return;
        }
        if (!handle_replies(conn) || (size_t)n < size)
            return;
    }
}

struct ready {
    struct redis_conn *conn;
    uint32_t events;
};

static void do_event(void *data)
{
    const struct ready *ready = data;
    struct redis_conn *conn = ready->conn;
    uint64_t serial = conn->serial;
    if (ready->events & EPOLLOUT)
        write_calls(conn);
    if (conn->serial == serial && ready->events & ~(uint32_t)EPOLLOUT)
        read_replies(conn);
}

static void on_event(struct mk_event *event, uint32_t events)
{
    struct ready ready = {MK_CONTAINER_OF(event, struct redis_conn, event), events};
    duda_package_loader->call(ready.conn->part->base, do_event, &ready);
}

/* ── connecting ── */

static void begin_ready(struct redis_conn *conn)
{
    conn->state = REDIS_READY;
    if (conn->role->on_ready)
        conn->role->on_ready(conn);
    mk_task_schedule(conn->part->loop, &conn->flush);
}

static void finish_greeting(void *owner, const struct redis_result *result)
{
    struct redis_conn *conn = owner;
    mem->free(result->reply);
    if (conn->state != REDIS_GREETING)
        return;
    if (result->err < 0) {
        char text[REDIS_TEXT_BYTES];
        snprintf(text, sizeof(text), "%s", result->text ? result->text : "it does not reply");
        fail_conn(conn, result->err, text, true);
    } else if (--conn->greetings == 0) {
        begin_ready(conn);
    }
}

/* Adds a call to a list of those that are to be written. */
static void add_call(struct redis_conn *conn, struct mk_list *queue, struct redis_call *call)
{
    mk_list_add(queue, &call->node);
    conn->n_calls += call->replies > 0;
    conn->bytes += call->len;
    call->is_counted = true;
    if (!call->replies)
        return;
    redis_part_count(conn->part, REDIS_WAITING, 1);
    call->deadline_ms = now_ms(conn) + conn->server->timeout_ms;
    mk_list_add(&conn->pending, &call->by_time);
    if (!conn->is_timer_armed)
        mk_timer_arm(conn->part->loop, &conn->timer, conn->server->timeout_ms);
    conn->is_timer_armed = true;
}

static bool add_greeting(struct redis_conn *conn, const struct duda_redis_arg *args, unsigned n)
{
    struct redis_call *call = redis_call_new(redis_format_measure(args, n), finish_greeting, conn);
    if (!call)
        return false;
    redis_format_write(call->bytes, args, n);
    add_call(conn, &conn->greeting, call);
    conn->greetings++;
    return true;
}

static bool add_greetings(struct redis_conn *conn)
{
    const struct redis_server *server = conn->server;
    struct duda_redis_arg auth[] = {{"AUTH", -1}, {server->user, -1}, {server->password, -1}};
    char db[12];
    snprintf(db, sizeof(db), "%u", server->db);
    if (!server->user)
        auth[1] = auth[2];
    return (!server->password || add_greeting(conn, auth, server->user ? 3 : 2)) &&
           (!server->db || add_greeting(conn, (const struct duda_redis_arg[]){{"SELECT", -1}, {db, -1}}, 2));
}

static void begin_conn(struct redis_conn *conn, int fd)
{
    conn->event.fd = fd;
    conn->events = EPOLLIN;
    conn->has_replied = false;
    conn->written = 0;
    conn->state = REDIS_GREETING;
    int err = mk_event_add(conn->part->loop, &conn->event, EPOLLIN);
    if (err == 0)
        err = redis_reader_init(&conn->reader, conn->server->reply_bytes_max);
    if (err == 0 && !add_greetings(conn))
        err = -ENOMEM;
    if (err < 0)
        fail_conn(conn, err, strerror(-err), false);
    else if (conn->greetings)
        write_calls(conn);
    else
        begin_ready(conn);
}

struct dialed {
    struct redis_conn *conn;
    int fd;
};

static void do_dialed(void *data)
{
    const struct dialed *dialed = data;
    if (dialed->fd < 0)
        fail_conn(dialed->conn, dialed->fd, mk_dial_error(dialed->fd), false);
    else
        begin_conn(dialed->conn, dialed->fd);
}

static void on_dialed(struct mk_dial *dial, int fd)
{
    struct dialed dialed = {MK_CONTAINER_OF(dial, struct redis_conn, dial), fd};
    duda_package_loader->call(dialed.conn->part->base, do_dialed, &dialed);
}

void redis_conn_open(struct redis_conn *conn)
{
    if (conn->state != REDIS_IDLE)
        return;
    struct mk_dial_options options = {.timeout_ms = conn->server->connect_timeout_ms};
    conn->state = REDIS_DIALING;
    mk_dial_start(&conn->dial, conn->part->loop, conn->server->target, &options, on_dialed);
}

static void do_retry(void *data)
{
    struct redis_conn *conn = data;
    if (conn->state == REDIS_READY) {
        if (conn->role->on_timer)
            conn->role->on_timer(conn);
    } else if (conn->state == REDIS_BACKOFF) {
        conn->state = REDIS_IDLE;
        if (conn->role->is_lasting || !mk_list_empty(&conn->waiting))
            redis_conn_open(conn);
    }
}

static void on_retry(struct mk_timer *timer)
{
    struct redis_conn *conn = MK_CONTAINER_OF(timer, struct redis_conn, retry);
    duda_package_loader->call(conn->part->base, do_retry, conn);
}

/* ── deadlines ── */

/* Tells a call that its time is over. One that the server may have stays in its list, for the reply. */
static void time_out(struct redis_conn *conn, struct redis_call *call)
{
    bool is_connected = conn->state == REDIS_READY || conn->state == REDIS_GREETING;
    int err = conn->err && !is_connected ? conn->err : -ETIMEDOUT;
    bool stays = call->is_sent;
    char text[REDIS_TEXT_BYTES];
    if (err == -ETIMEDOUT)
        snprintf(text, sizeof(text), "Redis %.*s: no reply within %u ms", MK_STR_ARG(conn->server->target->text),
                 conn->server->timeout_ms);
    else
        memcpy(text, conn->text, sizeof(text));
    if (stays) {
        conn->timeouts++;
        tell(conn, call, err, text); /* it may be freed */
        return;
    }
    mk_list_del(&call->node);
    tell(conn, call, err, text);
    remove_call(conn, call);
}

static void do_timer(void *data)
{
    struct redis_conn *conn = data;
    uint64_t now = now_ms(conn), next = 0;
    while (!mk_list_empty(&conn->pending)) {
        struct redis_call *call = MK_LIST_FIRST(&conn->pending, struct redis_call, by_time);
        next = call->deadline_ms;
        if (next > now)
            break;
        time_out(conn, call);
    }
    if (conn->timeouts >= TIMEOUTS_MAX)
        fail_conn(conn, -ETIMEDOUT, "it does not reply", false);
    conn->is_timer_armed = !mk_list_empty(&conn->pending);
    if (conn->is_timer_armed)
        mk_timer_arm(conn->part->loop, &conn->timer, next > now ? (uint32_t)(next - now) : 1);
}

static void on_timer(struct mk_timer *timer)
{
    struct redis_conn *conn = MK_CONTAINER_OF(timer, struct redis_conn, timer);
    duda_package_loader->call(conn->part->base, do_timer, conn);
}

/* ── sending ── */

static int refuse(struct redis_conn *conn, struct redis_call *call, int err)
{
    free_call(call);
    redis_part_count(conn->part, REDIS_ERRORS, 1);
    return err;
}

int redis_conn_send(struct redis_conn *conn, struct redis_call *call)
{
    bool is_full = conn->n_calls >= conn->server->pending_max || conn->bytes + call->len > QUEUE_BYTES_MAX;
    redis_part_count(conn->part, REDIS_COMMANDS, 1);
    if (is_full) {
        snprintf(conn->text, sizeof(conn->text), "Redis %.*s: %u commands of this worker wait for their replies",
                 MK_STR_ARG(conn->server->target->text), conn->n_calls);
        return refuse(conn, call, -EBUSY);
    }
    if (has_failed_long(conn) && (conn->state == REDIS_BACKOFF || conn->state == REDIS_DIALING))
        return refuse(conn, call, conn->err);
    add_call(conn, &conn->waiting, call);
    if (conn->state == REDIS_READY)
        mk_task_schedule(conn->part->loop, &conn->flush);
    else
        redis_conn_open(conn);
    return 0;
}

int redis_conn_push(struct redis_conn *conn, const struct duda_redis_arg *args, unsigned n)
{
    struct redis_call *call = redis_call_new(redis_format_measure(args, n), NULL, NULL);
    if (!call)
        return -ENOMEM;
    redis_format_write(call->bytes, args, n);
    call->replies = 0;
    add_call(conn, &conn->waiting, call);
    mk_task_schedule(conn->part->loop, &conn->flush);
    return 0;
}

/* ── life ── */

void redis_conn_init(struct redis_conn *conn, struct redis_part *part, const struct redis_server *server,
                     const struct redis_role *role, void *owner)
{
    *conn = (struct redis_conn){.part = part, .server = server, .role = role, .owner = owner};
    conn->event = (struct mk_event){.ready = on_event, .fd = -1};
    mk_list_init(&conn->greeting);
    mk_list_init(&conn->waiting);
    mk_list_init(&conn->sent);
    mk_list_init(&conn->pending);
    mk_timer_init(&conn->timer, on_timer);
    mk_timer_init(&conn->retry, on_retry);
    mk_task_init(&conn->flush, on_flush);
}

void redis_conn_stop(struct redis_conn *conn, bool has_loop)
{
    struct mk_list all;
    mk_list_init(&all);
    mk_dial_cancel(&conn->dial);
    mk_timer_cancel(&conn->timer);
    mk_timer_cancel(&conn->retry);
    mk_task_cancel(&conn->flush);
    close_fd(conn, has_loop);
    conn->state = REDIS_IDLE;
    mk_list_join(&all, &conn->sent);
    mk_list_join(&all, &conn->greeting);
    mk_list_join(&all, &conn->waiting);
    fail_calls(conn, &all, -ECANCELED, "the service ends");
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Servers and their connections: what happens when they fail, and how they are dialed again (<monkey/kit/upstream.h>).
 */
#include "upstream.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum {
    BACKOFF_MS = 50,
    BACKOFF_MS_MAX = 1000,
    LOG_INTERVAL_MS = 10000,
};

/* ── pools and servers ── */

void mk_upstream_pool_init(struct mk_upstream_pool *pool, struct mk_loop *loop, char *buffer)
{
    *pool = (struct mk_upstream_pool){.loop = loop, .buffer = buffer};
    pool->random = mk_loop_now_ms(loop) ^ (uintptr_t)pool;
}

void mk_upstream_init(struct mk_upstream *server, struct mk_upstream_pool *pool,
                      const struct mk_upstream_options *options)
{
    *server = (struct mk_upstream){.pool = pool, .options = options};
}

static uint32_t get_random(struct mk_upstream_pool *pool)
{
    pool->random = pool->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(pool->random >> 33);
}

static uint64_t now_ms(const struct mk_upstream *server)
{
    return mk_loop_now_ms(server->pool->loop);
}

void mk__upstream_set_error(struct mk_upstream *server, int err, const char *text)
{
    const struct mk_upstream_options *o = server->options;
    server->err = err;
    snprintf(server->text, sizeof(server->text), "%s %.*s: %s", o->name, MK_STR_ARG(o->target->text), text);
}

bool mk__upstream_is_wait_timed_out(const struct mk_upstream *server)
{
    uint64_t down_ms = server->failed_ms ? now_ms(server) - server->failed_ms : 0;
    return down_ms >= server->options->wait_timeout_ms;
}

/* Logs a failure, unless the last line about one was just written: a server may accept and close again and again. */
static void log_failure(struct mk_upstream *server)
{
    char line[MK_UPSTREAM_TEXT_BYTES + 64];
    uint64_t now = now_ms(server);
    if (server->is_logged || (server->logged_ms && now - server->logged_ms < LOG_INTERVAL_MS))
        return;
    server->is_logged = true;
    server->logged_ms = now;
    snprintf(line, sizeof(line), "%s; it is tried again until the server replies", server->text);
    server->pool->log(server->pool, true, line);
}

/* Counts a failure, and has the server left alone for a while that no two loops have in common. */
static void count_failure(struct mk_upstream *server)
{
    uint32_t delay_ms = BACKOFF_MS << (server->failures < 6 ? server->failures : 6);
    if (delay_ms > BACKOFF_MS_MAX)
        delay_ms = BACKOFF_MS_MAX;
    delay_ms = delay_ms / 2 + get_random(server->pool) % (delay_ms / 2 + 1);
    server->down_until_ms = now_ms(server) + delay_ms;
    server->failures++;
    if (!server->failed_ms)
        server->failed_ms = now_ms(server);
}

void mk_upstream_note_reply(struct mk_upstream_conn *conn)
{
    struct mk_upstream *server = conn->server;
    char line[MK_UPSTREAM_TEXT_BYTES];
    conn->timeouts = 0;
    conn->has_replied = true;
    conn->retry_ms = 0;
    server->err = 0;
    if (!server->failures)
        return;
    server->failures = 0;
    server->failed_ms = server->down_until_ms = 0;
    snprintf(line, sizeof(line), "%s %.*s: connected again", server->options->name,
             MK_STR_ARG(server->options->target->text));
    if (server->is_logged)
        server->pool->log(server->pool, false, line);
    server->is_logged = false;
}

/* ── entering the owner ── */

struct entry {
    struct mk_upstream_conn *conn;
    mk__upstream_fn fn;
    int64_t argument;
};

static void run_entry(void *data)
{
    const struct entry *entry = data;
    entry->fn(entry->conn, entry->argument);
}

void mk__upstream_enter(struct mk_upstream_conn *conn, mk__upstream_fn fn, int64_t argument)
{
    struct mk_upstream_pool *pool = conn->server->pool;
    struct entry entry = {conn, fn, argument};
    if (pool->enter)
        pool->enter(pool, run_entry, &entry);
    else
        run_entry(&entry);
}

/* ── closing ── */

static void close_fd(struct mk_upstream_conn *conn, bool has_loop)
{
    if (conn->event.fd >= 0) {
        if (has_loop)
            mk_event_del(conn->server->pool->loop, &conn->event);
        close(conn->event.fd);
    }
    conn->server->n_ready -= conn->state == MK_UPSTREAM_READY;
    conn->state = MK_UPSTREAM_CLOSED;
    conn->event.fd = -1;
    conn->serial++;
    conn->written = 0;
    conn->n_handshake_calls = 0;
    conn->timeouts = 0;
    conn->received_ms = 0;
    if (conn->protocol->on_close)
        conn->protocol->on_close(conn);
}

/* The server is not dialed before its delay is over. */
static void back_off(struct mk_upstream_conn *conn)
{
    uint64_t now = now_ms(conn->server), until = conn->server->down_until_ms;
    if (until < conn->retry_ms)
        until = conn->retry_ms;
    conn->state = MK_UPSTREAM_BACKOFF;
    mk_timer_arm(conn->server->pool->loop, &conn->retry, until > now ? (uint32_t)(until - now) : 1);
}

/* A call of which only a part was written is sent again: the server does not carry it out. */
static void take_back_part(struct mk_upstream_conn *conn, struct mk_list *lost)
{
    if (!conn->written || mk_list_empty(&conn->waiting))
        return;
    struct mk_upstream_call *call = MK_LIST_FIRST(&conn->waiting, struct mk_upstream_call, node);
    call->is_sent = false;
    if (!call->has_result)
        return;
    mk_list_del(&call->node);
    mk_list_add(lost, &call->node);
}

/* The server has failed; or this connection only, if others work. */
static void note_failure(struct mk_upstream_conn *conn)
{
    struct mk_upstream *server = conn->server;
    if (server->n_ready) {
        conn->retry_ms = now_ms(server) + BACKOFF_MS_MAX;
        return;
    }
    count_failure(server);
    log_failure(server);
}

void mk_upstream_fail(struct mk_upstream_conn *conn, int err, const char *text, bool fails_waiting)
{
    struct mk_list lost, unsent;
    char copy[MK_UPSTREAM_TEXT_BYTES];
    const struct mk_upstream_protocol *protocol = conn->protocol;
    bool was_ready = conn->state == MK_UPSTREAM_READY && conn->has_replied;
    bool may_redial = was_ready && err == -EPIPE && conn->server->options->redials_at_once;
    mk_list_init(&lost);
    mk_list_init(&unsent);
    snprintf(copy, sizeof(copy), "%s", text); /* it may be in what close_fd() frees */
    mk_dial_cancel(&conn->dial);
    mk_list_join(&lost, &conn->sent);
    if (conn->state != MK_UPSTREAM_HANDSHAKE)
        take_back_part(conn, &lost);
    mk_list_join(&lost, &conn->handshake_calls);
    close_fd(conn, true);
    mk__upstream_set_error(conn->server, err, copy);
    if (!may_redial)
        note_failure(conn);
    if (fails_waiting || protocol->is_single || (!may_redial && mk__upstream_is_wait_timed_out(conn->server)))
        mk_list_join(&unsent, &conn->waiting);
    if (!protocol->is_single && (protocol->is_lasting || !mk_list_empty(&conn->waiting)))
        back_off(conn);
    memcpy(copy, conn->server->text, sizeof(copy));
    mk__upstream_fail_calls(conn, &lost, err, copy);
    mk__upstream_fail_calls(conn, &unsent, err, copy);
    if (protocol->on_failed)
        protocol->on_failed(conn);
}

void mk__upstream_close_idle(struct mk_upstream_conn *conn)
{
    close_fd(conn, true);
    if (!mk_list_empty(&conn->waiting))
        mk_upstream_connect(conn);
}

/* ── connecting ── */

static void begin_ready(struct mk_upstream_conn *conn)
{
    conn->state = MK_UPSTREAM_READY;
    conn->has_replied = false;
    conn->server->n_ready++;
    if (conn->protocol->on_ready)
        conn->protocol->on_ready(conn);
    mk_task_schedule(conn->server->pool->loop, &conn->flush);
}

void mk_upstream_accept(struct mk_upstream_conn *conn)
{
    assert(conn->state == MK_UPSTREAM_HANDSHAKE && conn->n_handshake_calls);
    if (--conn->n_handshake_calls == 0)
        begin_ready(conn);
}

static void begin_conn(struct mk_upstream_conn *conn, int fd)
{
    conn->event.fd = fd;
    conn->events = EPOLLIN;
    conn->has_replied = false;
    conn->state = MK_UPSTREAM_HANDSHAKE;
    int err = mk_event_add(conn->server->pool->loop, &conn->event, EPOLLIN);
    if (err < 0) {
        close(fd);
        conn->event.fd = -1;
    } else if (conn->protocol->handshake) {
        err = conn->protocol->handshake(conn);
    }
    if (err < 0)
        mk_upstream_fail(conn, err, strerror(-err), false);
    else if (conn->n_handshake_calls)
        mk_task_schedule(conn->server->pool->loop, &conn->flush);
    else
        begin_ready(conn);
}

static void do_dialed(struct mk_upstream_conn *conn, int64_t fd)
{
    if (fd < 0)
        mk_upstream_fail(conn, (int)fd, mk_dial_error((int)fd), false);
    else
        begin_conn(conn, (int)fd);
}

static void on_dialed(struct mk_dial *dial, int fd)
{
    mk__upstream_enter(MK_CONTAINER_OF(dial, struct mk_upstream_conn, dial), do_dialed, fd);
}

void mk_upstream_connect(struct mk_upstream_conn *conn)
{
    if (conn->state != MK_UPSTREAM_CLOSED)
        return;
    if (conn->server->down_until_ms > now_ms(conn->server)) {
        back_off(conn);
        return;
    }
    const struct mk_upstream_options *o = conn->server->options;
    struct mk_dial_options options = {.timeout_ms = o->connect_timeout_ms};
    conn->state = MK_UPSTREAM_DIALING;
    mk_dial_start(&conn->dial, conn->server->pool->loop, o->target, &options, on_dialed);
}

static void do_retry(struct mk_upstream_conn *conn, int64_t unused)
{
    (void)unused;
    if (conn->state != MK_UPSTREAM_BACKOFF)
        return;
    conn->state = MK_UPSTREAM_CLOSED;
    if (conn->protocol->is_lasting || !mk_list_empty(&conn->waiting))
        mk_upstream_connect(conn);
}

static void on_retry(struct mk_timer *timer)
{
    mk__upstream_enter(MK_CONTAINER_OF(timer, struct mk_upstream_conn, retry), do_retry, 0);
}

/* ── life ── */

void mk_upstream_conn_init(struct mk_upstream_conn *conn, struct mk_upstream *server,
                           const struct mk_upstream_protocol *protocol)
{
    *conn = (struct mk_upstream_conn){.server = server, .protocol = protocol};
    mk_list_init(&conn->handshake_calls);
    mk_list_init(&conn->waiting);
    mk_list_init(&conn->sent);
    mk_list_init(&conn->pending);
    mk_timer_init(&conn->retry, on_retry);
    mk__upstream_io_init(conn);
}

void mk_upstream_stop(struct mk_upstream_conn *conn, bool has_loop)
{
    struct mk_list all;
    mk_list_init(&all);
    mk_dial_cancel(&conn->dial);
    mk_timer_cancel(&conn->timer);
    mk_timer_cancel(&conn->retry);
    mk_task_cancel(&conn->flush);
    close_fd(conn, has_loop);
    mk_list_join(&all, &conn->sent);
    mk_list_join(&all, &conn->handshake_calls);
    mk_list_join(&all, &conn->waiting);
    mk__upstream_fail_calls(conn, &all, -ECANCELED, "the service ends in this worker");
}

// SPDX-License-Identifier: Apache-2.0
/*
 * A connection to a Redis server (redis.h).
 */
#include "redis.h"

#include "format.h"

#include <duda/mem.h>

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
    QUEUE_BYTES_MAX = 64 << 20, /* of commands that were not written */
    TIMEOUTS_MAX = 3,           /* in a row, before the connection is made anew */
};

struct mk_upstream_options redis_options(uint32_t connect_timeout_ms, uint32_t timeout_ms, uint32_t pending_max)
{
    return (struct mk_upstream_options){
        .name = "Redis",
        .connect_timeout_ms = connect_timeout_ms,
        .timeout_ms = timeout_ms,
        .timeouts_max = TIMEOUTS_MAX,
        .wait_timeout_ms = timeout_ms,
        .fails_while_dialing = true,
        .pending_max = pending_max,
        .queue_bytes_max = QUEUE_BYTES_MAX,
    };
}

static struct redis_call *call_of(struct mk_upstream_call *base)
{
    return MK_CONTAINER_OF(base, struct redis_call, base);
}

/* ── calls ── */

struct redis_call *redis_call_new(size_t len, redis_done_fn done, void *owner)
{
    assert(len && len <= REDIS_COMMAND_BYTES_MAX);
    struct redis_call *call = mem->alloc(sizeof(*call) + len);
    if (!call)
        return NULL;
    *call = (struct redis_call){.done = done, .owner = owner, .replies = 1, .len = len};
    mk_upstream_call_init(&call->base, mk_str(call->bytes, len));
    return call;
}

static void free_call(struct redis_call *call)
{
    mem->free(call->refusal);
    mem->free(call);
}

/* Its reply has come, or is not waited for any more. */
void redis_free(struct mk_upstream_conn *base, struct mk_upstream_call *call)
{
    if (call->has_reply)
        redis_worker_count(redis_conn_of(base)->worker, REDIS_WAITING, -1);
    free_call(call_of(call));
}

/* Tells what has become of a call. */
static void report_result(struct redis_conn *conn, struct redis_call *call, struct redis_result *result)
{
    assert(result->err < 0 || result->reply);
    redis_done_fn done = call->done;
    call->done = NULL;
    result->command = call->base.bytes;
    result->has_ended = conn->worker->is_stopping;
    if (result->err < 0)
        redis_worker_count(conn->worker, REDIS_ERRORS, 1);
    if (done)
        done(call->owner, result);
    else
        mem->free(result->reply);
}

void redis_done(struct mk_upstream_conn *base, struct mk_upstream_call *call, int err, const char *text)
{
    report_result(redis_conn_of(base), call_of(call), &(struct redis_result){.err = err, .text = text});
}

/* ── replies ── */

/* One of the replies to a transaction: those before the last one are +QUEUED or errors. Returns the one to tell. */
static redisReply *take_part(struct redis_call *call, redisReply *reply)
{
    assert(reply);
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

/* Tells a reply that may be an error, unless the call has ended by its time limit. */
static void report_reply(struct redis_conn *conn, struct redis_call *call, redisReply *reply)
{
    struct redis_result result = {.reply = reply};
    bool is_error = reply->type == REDIS_REPLY_ERROR;
    if (is_error)
        result = (struct redis_result){.err = redis_status_of(reply->str), .text = reply->str, .refusal = reply};
    if (!call->base.has_result)
        report_result(conn, call, &result);
    if (is_error || call->base.has_result)
        mem->free(reply);
}

static void match_reply(struct redis_conn *conn, redisReply *reply)
{
    struct mk_upstream_call *first = mk_upstream_first(&conn->base);
    if (!first) {
        bool is_error = reply->type == REDIS_REPLY_ERROR;
        mk_upstream_fail(&conn->base, is_error ? redis_status_of(reply->str) : -EPROTO,
                         is_error ? reply->str : "the server has sent a reply without a command", true);
        mem->free(reply);
        return;
    }
    struct redis_call *call = call_of(first);
    assert(call->replies > 0);
    call->replies--;
    reply = take_part(call, reply);
    if (!reply)
        return;
    mk_upstream_take(&conn->base, first);
    report_reply(conn, call, reply);
    redis_free(&conn->base, first);
}

static void handle_reply(struct redis_conn *conn, redisReply *reply)
{
    uint64_t serial = conn->base.serial;
    bool is_refusal = reply->type == REDIS_REPLY_ERROR && (conn->base.state == MK_UPSTREAM_HANDSHAKE ||
                                                           conn->role->protocol.is_lasting); /* it is of no use */
    if (!is_refusal) {
        if (conn->up.failures)
            redis_worker_count(conn->worker, REDIS_RECONNECTS, 1);
        mk_upstream_note_reply(&conn->base);
    }
    bool is_taken = conn->base.state == MK_UPSTREAM_READY && conn->role->on_reply && conn->role->on_reply(conn, reply);
    if (!is_taken && conn->base.serial == serial)
        match_reply(conn, reply);
}

void redis_feed(struct mk_upstream_conn *base, const char *bytes, size_t n)
{
    struct redis_conn *conn = redis_conn_of(base);
    uint64_t serial = base->serial;
    redisReply *reply = NULL;
    int result = 1;
    if (redis_reader_feed(&conn->reader, bytes, n) < 0) {
        mk_upstream_fail(base, -ENOMEM, "no memory for the reply", false);
        return;
    }
    while (base->serial == serial && (result = redis_reader_next(&conn->reader, &reply)) > 0)
        handle_reply(conn, reply);
    if (base->serial == serial && result < 0)
        mk_upstream_fail(base, result, conn->reader.error, false);
}

/* ── logging in ── */

static void finish_handshake_call(void *owner, const struct redis_result *result)
{
    struct redis_conn *conn = owner;
    mem->free(result->reply);
    if (conn->base.state != MK_UPSTREAM_HANDSHAKE)
        return;
    if (result->err < 0)
        mk_upstream_fail(&conn->base, result->err, result->text ? result->text : "it does not reply", true);
    else
        mk_upstream_accept(&conn->base);
}

static bool add_handshake_call(struct redis_conn *conn, const struct duda_redis_arg *args, unsigned n)
{
    struct redis_call *call = redis_call_new(redis_format_measure(args, n), finish_handshake_call, conn);
    if (!call)
        return false;
    redis_format_write(call->bytes, args, n);
    redis_worker_count(conn->worker, REDIS_WAITING, 1);
    mk_upstream_handshake(&conn->base, &call->base);
    return true;
}

int redis_handshake(struct mk_upstream_conn *base)
{
    struct redis_conn *conn = redis_conn_of(base);
    const struct redis_server *server = conn->server;
    struct duda_redis_arg auth[] = {{"AUTH", -1}, {server->user, -1}, {server->password, -1}};
    char db[12];
    int err = redis_reader_init(&conn->reader, server->reply_bytes_max);
    snprintf(db, sizeof(db), "%u", server->db);
    if (!server->user)
        auth[1] = auth[2];
    if (err == 0 && server->password && !add_handshake_call(conn, auth, server->user ? 3 : 2))
        err = -ENOMEM;
    if (err == 0 && server->db &&
        !add_handshake_call(conn, (const struct duda_redis_arg[]){{"SELECT", -1}, {db, -1}}, 2))
        err = -ENOMEM;
    return err;
}

/* ── the connection ── */

void redis_close(struct mk_upstream_conn *base)
{
    redis_reader_release(&redis_conn_of(base)->reader);
}

void redis_conn_init(struct redis_conn *conn, struct redis_worker *w, const struct redis_server *server,
                     const struct redis_role *role, void *owner)
{
    assert(w && server && role);
    *conn = (struct redis_conn){.worker = w, .server = server, .role = role, .owner = owner};
    mk_upstream_init(&conn->up, &w->pool, &server->options);
    mk_upstream_conn_init(&conn->base, &conn->up, &role->protocol);
}

int redis_conn_send(struct redis_conn *conn, struct redis_call *call)
{
    assert(call->len && (call->done || !call->owner));
    call->base.has_reply = call->replies;
    redis_worker_count(conn->worker, REDIS_COMMANDS, 1);
    int err = mk_upstream_send(&conn->base, &call->base);
    if (err < 0) {
        free_call(call);
        redis_worker_count(conn->worker, REDIS_ERRORS, 1);
    } else if (call->replies) {
        redis_worker_count(conn->worker, REDIS_WAITING, 1);
    }
    return err;
}

int redis_conn_push(struct redis_conn *conn, const struct duda_redis_arg *args, unsigned n)
{
    struct redis_call *call = redis_call_new(redis_format_measure(args, n), NULL, NULL);
    if (!call)
        return -ENOMEM;
    redis_format_write(call->bytes, args, n);
    call->base.has_reply = false;
    int err = mk_upstream_send(&conn->base, &call->base);
    if (err < 0)
        free_call(call);
    return err;
}

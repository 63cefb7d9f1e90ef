// SPDX-License-Identifier: Apache-2.0
/*
 * The calls of the original API: contexts as those of hiredis, each with its own connection that is not made
 * again.
 *
 *     connect ─► attach ─► (dial) ─► commands ─► disconnect, free, or a failure ─► the end of the turn: freed
 *
 * A context is looked up in the list of its worker, so that one that has ended harms no memory.
 */
#include "format.h"
#include "redis.h"

#include <duda/gc.h>
#include <duda/mem.h>
#include <duda/msg.h>

#include <stdio.h>
#include <string.h>

enum { CONTEXTS_MAX = 1000, CONTEXT_MS = 5000, CONTEXT_PENDING = 10000, CONTEXT_REPLY_BYTES = 16 << 20 };
enum { ERR_IO = 1, ERR_OTHER = 2, ARENA_BYTES = 4096 };

/* The request of a context, which either may outlive. */
struct old_request {
    duda_request_t *dr; /* NULL: it has ended */
    unsigned refs;
};

/* A channel or pattern that a context has subscribed to. */
struct old_channel {
    struct old_channel *next;
    redisCallbackFn *fn;
    void *data;
    bool is_pattern;
    size_t len;
    char name[];
};

struct old_context {
    redisAsyncContext pub; /* what services see */
    struct mk_list node;   /* in redis_worker.contexts */
    struct redis_worker *worker;
    struct redis_conn conn;
    struct redis_server server;
    struct mk_arena arena;
    struct old_request *request; /* or NULL */
    struct old_channel *channels;
    redisConnectCallback *on_connect;
    redisDisconnectCallback *on_disconnect;
    struct mk_task end;
    bool is_connected, is_leaving; /* it was; disconnect() was called */
    unsigned n_calls;
};

/* A command, until its reply. */
struct old_call {
    struct old_context *ctx;
    redisCallbackFn *fn;
    void *data;
};

/* ── finding ── */

/* Returns the context of this worker that a service names, or NULL, which is logged. */
static struct old_context *find_context(const redisAsyncContext *pub, const char *call)
{
    struct redis_worker *w = redis_worker_find(call);
    if (!w)
        return NULL;
    MK_LIST_EACH_ITEM(&w->contexts, struct old_context, node, ctx)
        if (&ctx->pub == pub)
            return ctx;
    msg->err("redis->%s(): the context has ended, or is none of this worker", call);
    return NULL;
}

/* ── requests ── */

static void drop_request(void *ptr)
{
    struct old_request *request = ptr;
    if (request && --request->refs == 0)
        mem->free(request);
}

static void leave_request(void *ptr)
{
    struct old_request *request = ptr;
    request->dr = NULL;
    drop_request(request);
}

static void set_request(struct old_context *ctx, duda_request_t *dr)
{
    if (!dr || (ctx->request && ctx->request->dr == dr))
        return;
    drop_request(ctx->request);
    ctx->request = mem->alloc(sizeof(*ctx->request));
    if (!ctx->request)
        return;
    *ctx->request = (struct old_request){.dr = dr, .refs = 2};
    if (gc->add_destroy(dr, ctx->request, leave_request) == 0)
        return;
    mem->free(ctx->request);
    ctx->request = NULL;
}

/* ── calling the service ── */

enum event { EVENT_REPLY, EVENT_CONNECT, EVENT_DISCONNECT };

struct event_call {
    struct old_context *ctx;
    enum event event;
    int status;
    redisCallbackFn *fn;
    void *reply, *data;
};

static void run_callback(void *data)
{
    const struct event_call *c = data;
    struct old_context *ctx = c->ctx;
    if (c->event == EVENT_CONNECT && ctx->on_connect)
        ctx->on_connect(&ctx->pub, c->status);
    else if (c->event == EVENT_DISCONNECT && ctx->on_disconnect)
        ctx->on_disconnect(&ctx->pub, c->status);
    else if (c->event == EVENT_REPLY && c->fn)
        c->fn(&ctx->pub, c->reply, c->data);
}

static void call_service(struct event_call call)
{
    duda_package_loader->call(call.ctx->worker->base, run_callback, &call);
}

/* ── the end ── */

static void set_error(struct old_context *ctx, const char *text)
{
    redisAsyncContext *pub = &ctx->pub;
    if (pub->err)
        return;
    pub->err = pub->c.err = ERR_IO;
    size_t len = text ? strnlen(text, sizeof(pub->c.errstr) - 1) : 0;
    if (len)
        memcpy(pub->c.errstr, text, len);
    pub->c.errstr[len] = '\0';
}

static void free_context(struct old_context *ctx)
{
    for (struct old_channel *channel = ctx->channels, *next; channel; channel = next) {
        next = channel->next;
        mem->free(channel);
    }
    mk_list_del(&ctx->node);
    mk_task_cancel(&ctx->end);
    ctx->worker->n_contexts--;
    drop_request(ctx->request);
    mk_arena_release(&ctx->arena);
    mem->free(ctx);
}

static void end_context(struct old_context *ctx, bool has_loop)
{
    int status = ctx->pub.err ? REDIS_ERR : REDIS_OK;
    mk_upstream_stop(&ctx->conn.base, has_loop);
    if (ctx->is_connected)
        call_service((struct event_call){.ctx = ctx, .event = EVENT_DISCONNECT, .status = status});
    else if (status == REDIS_ERR)
        call_service((struct event_call){.ctx = ctx, .event = EVENT_CONNECT, .status = status});
    free_context(ctx);
}

static void do_end(void *data)
{
    end_context(data, true);
}

static void on_end(struct mk_task *task)
{
    struct old_context *ctx = MK_CONTAINER_OF(task, struct old_context, end);
    duda_package_loader->call(ctx->worker->base, do_end, ctx);
}

static void begin_end(struct old_context *ctx)
{
    ctx->is_leaving = true;
    if (!ctx->worker->is_stopping)
        mk_task_schedule(ctx->worker->loop, &ctx->end);
}

void redis_old_stop(struct redis_worker *w, bool has_loop)
{
    while (!mk_list_empty(&w->contexts))
        end_context(MK_LIST_FIRST(&w->contexts, struct old_context, node), has_loop);
}

/* ── the connection ── */

static void report_ready(struct mk_upstream_conn *base)
{
    struct old_context *ctx = redis_conn_of(base)->owner;
    ctx->is_connected = true;
    call_service((struct event_call){.ctx = ctx, .event = EVENT_CONNECT, .status = REDIS_OK});
}

static void report_failed(struct mk_upstream_conn *base)
{
    struct old_context *ctx = redis_conn_of(base)->owner;
    set_error(ctx, ctx->conn.up.text);
    begin_end(ctx);
}

static const struct old_channel *find_channel(const struct old_context *ctx, bool is_pattern, const redisReply *name)
{
    const struct old_channel *c = ctx->channels;
    while (c && (c->is_pattern != is_pattern || c->len != name->len || memcmp(c->name, name->str, name->len) != 0))
        c = c->next;
    return c;
}

/* Takes replies to subscriptions, and messages. */
static bool take_message(struct redis_conn *conn, redisReply *reply)
{
    struct old_context *ctx = conn->owner;
    if (!ctx->channels || reply->type != REDIS_REPLY_ARRAY || reply->elements < 3 || !reply->element[0]->str ||
        !reply->element[1]->str)
        return false;
    bool is_pattern = reply->element[0]->str[0] == 'p';
    const struct old_channel *channel = find_channel(ctx, is_pattern, reply->element[1]);
    if (channel)
        call_service((struct event_call){
            .ctx = ctx, .event = EVENT_REPLY, .fn = channel->fn, .reply = reply, .data = channel->data});
    mem->free(reply);
    return true;
}

static const struct redis_role old_role = {
    .protocol = {REDIS_PROTOCOL, .on_ready = report_ready, .on_failed = report_failed, .is_single = true},
    .on_reply = take_message,
};

/* ── contexts ── */

/* Reads the address. Returns whether it is one; else the context has an error. */
static bool set_target(struct old_context *ctx, const char *ip, int port)
{
    char text[300];
    const char *fault = "the port is wrong";
    bool is_v6 = ip && strchr(ip, ':') && *ip != '[';
    snprintf(text, sizeof(text), "%s%s%s:%d", is_v6 ? "[" : "", ip ? ip : "", is_v6 ? "]" : "", port);
    struct mk_str copy = mk_arena_dup(&ctx->arena, mk_str_c(text));
    if (copy.p && port > 0 &&
        mk_dial_target_parse(&ctx->arena, copy, MK_DIAL_PORT_REQUIRED, &ctx->server.options.target, &fault) == 0)
        return true;
    set_error(ctx, fault);
    ctx->pub.err = ctx->pub.c.err = ERR_OTHER;
    return false;
}

redisAsyncContext *redis_old_connect(const char *ip, int port, duda_request_t *dr)
{
    struct redis_worker *w = redis_worker_find("connect");
    struct old_context *ctx = w && w->n_contexts < CONTEXTS_MAX ? mem->alloc_z(sizeof(*ctx)) : NULL;
    if (!ctx)
        return NULL;
    ctx->worker = w;
    ctx->pub.errstr = ctx->pub.c.errstr;
    ctx->server = (struct redis_server){
        .options = redis_options(CONTEXT_MS, CONTEXT_MS, CONTEXT_PENDING),
        .reply_bytes_max = CONTEXT_REPLY_BYTES,
    };
    mk_arena_init(&ctx->arena, NULL, ARENA_BYTES, NULL, 0);
    mk_task_init(&ctx->end, on_end);
    redis_conn_init(&ctx->conn, w, &ctx->server, &old_role, ctx);
    mk_list_add(&w->contexts, &ctx->node);
    w->n_contexts++;
    if (!set_target(ctx, ip, port))
        begin_end(ctx); /* services need not free what has an error */
    set_request(ctx, dr);
    return &ctx->pub;
}

int redis_old_attach(redisAsyncContext *pub, duda_request_t *dr)
{
    struct old_context *ctx = find_context(pub, "attach");
    if (!ctx || ctx->pub.err || ctx->is_leaving)
        return REDIS_ERR;
    set_request(ctx, dr);
    mk_upstream_connect(&ctx->conn.base);
    return REDIS_OK;
}

int redis_old_set_connect_callback(redisAsyncContext *pub, redisConnectCallback *fn)
{
    struct old_context *ctx = find_context(pub, "setConnectCallback");
    if (!ctx || ctx->on_connect)
        return REDIS_ERR;
    ctx->on_connect = fn;
    return REDIS_OK;
}

int redis_old_set_disconnect_callback(redisAsyncContext *pub, redisDisconnectCallback *fn)
{
    struct old_context *ctx = find_context(pub, "setDisconnectCallback");
    if (!ctx || ctx->on_disconnect)
        return REDIS_ERR;
    ctx->on_disconnect = fn;
    return REDIS_OK;
}

void redis_old_disconnect(redisAsyncContext *pub)
{
    struct old_context *ctx = find_context(pub, "disconnect");
    if (!ctx)
        return;
    ctx->is_leaving = true;
    if (!ctx->n_calls)
        begin_end(ctx);
}

void redis_old_free(redisAsyncContext *pub)
{
    struct old_context *ctx = find_context(pub, "free");
    if (ctx)
        begin_end(ctx);
}

duda_request_t *redis_old_get_request(const redisAsyncContext *pub)
{
    const struct old_context *ctx = find_context(pub, "getDudarequest");
    return ctx && ctx->request ? ctx->request->dr : NULL;
}

/* ── commands ── */

static void finish_call(void *owner, const struct redis_result *result)
{
    struct old_call *call = owner;
    struct old_context *ctx = call->ctx;
    redisReply *reply = result->reply ? result->reply : result->refusal;
    ctx->n_calls--;
    if (!reply) {
        set_error(ctx, result->text);
        begin_end(ctx);
    }
    call_service(
        (struct event_call){.ctx = ctx, .event = EVENT_REPLY, .fn = call->fn, .reply = reply, .data = call->data});
    mem->free(result->reply);
    mem->free(call);
    if (ctx->is_leaving && !ctx->n_calls)
        begin_end(ctx);
}

static bool add_channel(struct old_context *ctx, struct mk_str name, bool is_pattern, redisCallbackFn *fn, void *data)
{
    struct old_channel *channel = mem->alloc(sizeof(*channel) + name.len);
    if (!channel)
        return false;
    *channel = (struct old_channel){ctx->channels, fn, data, is_pattern, name.len};
    memcpy(channel->name, name.p, name.len);
    ctx->channels = channel;
    return true;
}

/* Remembers what a command subscribes to. Returns whether its replies are messages. */
static bool take_subscription(struct old_context *ctx, struct mk_str bytes, redisCallbackFn *fn, void *data)
{
    struct mk_str word, name;
    redis_format_next(&bytes, &word);
    bool is_pattern = mk_str_ieq(word, MK_STR("psubscribe"));
    if (mk_str_ieq(word, MK_STR("unsubscribe")) || mk_str_ieq(word, MK_STR("punsubscribe")))
        return ctx->channels;
    if (!is_pattern && !mk_str_ieq(word, MK_STR("subscribe")))
        return false;
    while (redis_format_next(&bytes, &name))
        if (!add_channel(ctx, name, is_pattern, fn, data))
            break;
    return true;
}

static int send_call(struct old_context *ctx, struct mk_str bytes, redisCallbackFn *fn, void *data)
{
    struct redis_call *call = redis_call_new(bytes.len, NULL, NULL);
    struct old_call *owner = call ? mem->alloc(sizeof(*owner)) : NULL;
    if (!owner) {
        mem->free(call);
        return REDIS_ERR;
    }
    memcpy(call->bytes, bytes.p, bytes.len);
    if (take_subscription(ctx, bytes, fn, data)) {
        call->replies = 0;
        mem->free(owner);
    } else {
        *owner = (struct old_call){ctx, fn, data};
        call->done = finish_call;
        call->owner = owner;
        ctx->n_calls++;
    }
    bool counts = call->done;
    if (redis_conn_send(&ctx->conn, call) == 0)
        return REDIS_OK;
    if (counts) {
        ctx->n_calls--;
        mem->free(owner);
    }
    return REDIS_ERR;
}

int redis_old_command(redisAsyncContext *pub, redisCallbackFn *fn, void *data, const char *format, ...)
{
    struct old_context *ctx = find_context(pub, "command");
    int err;
    if (!ctx || ctx->pub.err || ctx->is_leaving || !format)
        return REDIS_ERR;
    va_list args;
    va_start(args, format);
    struct mk_str bytes = redis_format_text(format, args, &err);
    va_end(args);
    if (!bytes.p)
        return REDIS_ERR;
    int result = send_call(ctx, bytes, fn, data);
    redis_format_free(bytes);
    return result;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * The package redis: the servers of a service, and what its workers have of them.
 */
#include "redis.h"

#include <duda/mem.h>
#include <duda/msg.h>

#include <errno.h>
#include <string.h>

enum {
    ARENA_BYTES_MAX = 1 << 20,
    CONNECT_MS = 1000,
    COMMAND_MS = 2000,
    WAIT_MS_MAX = 60000,
    PENDING = 10000,
    PENDING_MAX = 1000000,
    REPLY_BYTES = 16 << 20,
    REPLY_BYTES_MAX = 512 << 20,
};

/* ── finding ── */

struct redis_worker *redis_worker_find(const char *call)
{
    struct duda_package_worker *base = duda_package_loader->worker(&redis_package);
    struct redis_worker *w = base ? base->state : NULL;
    if (w && !w->is_stopping)
        return w;
    if (call)
        msg->err("redis->%s(): it works only in callbacks and dthreads of workers; the call did nothing", call);
    return NULL;
}

struct redis_service *redis_service_find(const char *call)
{
    struct redis_service *service = duda_package_loader->service_state(&redis_package);
    if (service && !atomic_load(&service->started))
        return service;
    msg->err("redis->%s(): it works only in duda_main(); the call did nothing", call);
    return NULL;
}

struct redis_client *redis_worker_client(struct redis_worker *w, const struct duda_redis *db)
{
    struct redis_client **client = &w->clients[db->index];
    if (*client)
        return *client;
    *client = mem->alloc_z(sizeof(**client));
    if (!*client)
        return NULL;
    redis_conn_init(&(*client)->commands, w, &db->server, &redis_commands_role, *client);
    redis_conn_init(&(*client)->messages, w, &db->server, &redis_messages_role, (void *)(uintptr_t)db);
    mk_timer_init(&(*client)->ping, redis_subscribe_ping);
    return *client;
}

/* ── counters ── */

static void add_counts(struct redis_worker *w)
{
    for (unsigned i = 0; i < REDIS_COUNTS; i++) {
        if (w->counts[i])
            duda_package_loader->count(w->base->loop ? w->base : NULL, w->service->counters[i], w->counts[i]);
        w->counts[i] = 0;
    }
}

static void on_counting(struct mk_task *task)
{
    add_counts(MK_CONTAINER_OF(task, struct redis_worker, counting));
}

void redis_worker_count(struct redis_worker *w, enum redis_count which, int64_t n)
{
    w->counts[which] += n;
    if (!w->is_stopping)
        mk_task_schedule(w->loop, &w->counting);
}

static void open_counters(struct redis_service *service)
{
    static const struct {
        const char *name, *help;
        bool is_level;
    } rows[REDIS_COUNTS] = {
        [REDIS_COMMANDS] = {"redis_commands", "commands to Redis, by host and service", false},
        [REDIS_ERRORS] = {"redis_errors", "commands to Redis that have failed, by host and service", false},
        [REDIS_RECONNECTS] = {"redis_reconnects", "connections to Redis that were made again, by host and service",
                              false},
        [REDIS_WAITING] = {"redis_waiting", "commands that wait for Redis, by host and service", true},
    };
    for (unsigned i = 0; i < REDIS_COUNTS; i++)
        service->counters[i] =
            duda_package_loader->counter(&redis_package, rows[i].name, rows[i].help, rows[i].is_level);
}

/* ── open() ── */

static struct duda_redis_conf add_defaults(const struct duda_redis_conf *conf)
{
    struct duda_redis_conf c = conf ? *conf : (struct duda_redis_conf){0};
    c.address = c.address ? c.address : "127.0.0.1:6379";
    c.connect_timeout_ms = c.connect_timeout_ms ? c.connect_timeout_ms : CONNECT_MS;
    c.timeout_ms = c.timeout_ms ? c.timeout_ms : COMMAND_MS;
    c.pending_max = c.pending_max ? c.pending_max : PENDING;
    c.reply_bytes_max = c.reply_bytes_max ? c.reply_bytes_max : REPLY_BYTES;
    return c;
}

static const char *find_fault(const struct redis_service *service, const struct duda_redis_conf *c)
{
    if (service->n == REDIS_SERVERS_MAX)
        return "a service has at most 16 servers";
    if (c->connect_timeout_ms > WAIT_MS_MAX || c->timeout_ms > WAIT_MS_MAX)
        return "`connect_timeout_ms` and `timeout_ms` must be at most 60000";
    if (c->pending_max > PENDING_MAX)
        return "`pending_max` must be at most 1000000";
    if (c->reply_bytes_max > REPLY_BYTES_MAX)
        return "`reply_bytes_max` must be at most 536870912";
    if (c->user && !c->password)
        return "`user` needs a `password`";
    return NULL;
}

static const char *copy_text(struct mk_arena *arena, const char *text)
{
    return text ? mk_arena_dup(arena, mk_str_c(text)).p : NULL;
}

/* Makes the server of checked settings. Returns NULL with a clause in *ret_fault. */
static struct duda_redis *make_server(struct redis_service *service, const struct duda_redis_conf *c,
                                      const char **ret_fault)
{
    struct mk_arena *arena = &service->arena;
    struct duda_redis *db = mk_arena_zalloc(arena, sizeof(*db));
    *ret_fault = "no memory";
    if (!db)
        return NULL;
    db->index = service->n;
    db->server = (struct redis_server){
        .user = copy_text(arena, c->user),
        .password = copy_text(arena, c->password),
        .db = c->db,
        .options = redis_options(c->connect_timeout_ms, c->timeout_ms, c->pending_max),
        .reply_bytes_max = c->reply_bytes_max,
    };
    struct mk_str address = mk_arena_dup(arena, mk_str_c(c->address));
    if (!address.p || (c->user && !db->server.user) || (c->password && !db->server.password))
        return NULL;
    int err = mk_dial_target_parse(arena, address, 6379, &db->server.options.target, ret_fault);
    return err < 0 ? NULL : db;
}

static duda_redis_t *open_server(const struct duda_redis_conf *conf)
{
    struct redis_service *service = redis_service_find("open");
    if (!service)
        return NULL;
    struct duda_redis_conf c = add_defaults(conf);
    const char *fault = find_fault(service, &c);
    struct duda_redis *db = fault ? NULL : make_server(service, &c, &fault);
    if (!db) {
        msg->err("redis->open(\"%s\"): %s", c.address, fault);
        return NULL;
    }
    db->next = service->first;
    service->first = db;
    service->n++;
    return db;
}

/* ── services and workers ── */

static void *start_service(void)
{
    struct redis_service *service = mem->alloc_z(sizeof(*service));
    if (!service)
        return NULL;
    mk_arena_init(&service->arena, NULL, ARENA_BYTES_MAX, NULL, 0);
    open_counters(service);
    return service;
}

static void stop_service(void *state)
{
    struct redis_service *service = state;
    mk_arena_release(&service->arena);
    mem->free(service);
}

static void stop_worker(struct duda_package_worker *base)
{
    struct redis_worker *w = base->state;
    bool has_loop = base->loop;
    w->is_stopping = true;
    for (unsigned i = 0; i < REDIS_SERVERS_MAX; i++) {
        if (!w->clients[i])
            continue;
        mk_timer_cancel(&w->clients[i]->ping);
        mk_upstream_stop(&w->clients[i]->commands.base, has_loop);
        mk_upstream_stop(&w->clients[i]->messages.base, has_loop);
        mem->free(w->clients[i]);
    }
    redis_old_stop(w, has_loop);
    mk_task_cancel(&w->counting);
    add_counts(w);
    base->state = NULL;
    mem->free(w->buffer);
    mem->free(w);
}

static void enter_service(struct mk_upstream_pool *pool, void (*fn)(void *data), void *data)
{
    duda_package_loader->call(MK_CONTAINER_OF(pool, struct redis_worker, pool)->base, fn, data);
}

static void log_server(struct mk_upstream_pool *pool, bool has_failed, const char *text)
{
    (void)pool;
    if (has_failed)
        msg->warn("%s", text);
    else
        msg->info("%s", text);
}

static int start_worker(struct duda_package_worker *base)
{
    struct redis_worker *w = mem->alloc_z(sizeof(*w));
    if (!w)
        return -ENOMEM;
    w->base = base;
    w->loop = base->loop;
    w->service = base->service_state;
    w->buffer = mem->alloc(MK_UPSTREAM_READ_BYTES);
    mk_upstream_pool_init(&w->pool, base->loop, w->buffer);
    w->pool.enter = enter_service;
    w->pool.log = log_server;
    mk_list_init(&w->contexts);
    mk_task_init(&w->counting, on_counting);
    atomic_store(&w->service->started, true);
    base->state = w;
    if (w->buffer && redis_subscribe_start(w) == 0)
        return 0;
    stop_worker(base);
    return -ENOMEM;
}

static const struct duda_api_redis table = {
    .connect = redis_old_connect,
    .attach = redis_old_attach,
    .setConnectCallback = redis_old_set_connect_callback,
    .setDisconnectCallback = redis_old_set_disconnect_callback,
    .command = redis_old_command,
    .disconnect = redis_old_disconnect,
    .free = redis_old_free,
    .getDudarequest = redis_old_get_request,
    .open = open_server,
    .subscribe = redis_subscribe,
    .ask = redis_ask,
    .ask_args = redis_ask_args,
    .ask_all = redis_ask_all,
    .send = redis_send,
    .send_args = redis_send_args,
    .error = redis_error,
    .sessions = redis_sessions,
};

DUDA_PACKAGE_MAIN(redis_package, "redis", "2.0.0", &table, .service_start = start_service, .service_stop = stop_service,
                  .worker_start = start_worker, .worker_stop = stop_worker)

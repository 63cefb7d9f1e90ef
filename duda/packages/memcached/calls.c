// SPDX-License-Identifier: Apache-2.0
/*
 * The package memcached: the functions of memcached.h, for dthreads and with callbacks.
 */
#include "memcached.h"

#include <duda/gc.h>
#include <duda/mem.h>

#include <errno.h>
#include <stdio.h>

typedef struct duda_memcached_command command_t;
typedef struct duda_memcached_reply reply_t;

/* Returns what the worker has of these servers, or NULL, which is logged. */
static struct mc_pool *find_pool(duda_memcached_t *cache, const char *call)
{
    struct duda_package_worker *base = duda_package_loader->worker(&mc_package);
    struct mc_worker *w = base ? base->state : NULL;
    if (!w)
        mc_refuse(NULL, call, 0, "it works only in callbacks and dthreads of workers");
    else if (!cache || cache->service != w->service)
        mc_refuse(w, call, 0, "these are no servers that the service has opened");
    else
        return &w->pools[cache->index];
    return NULL;
}

/* ── waiting ── */

/* Waits until all commands have a result: each has a timeout. */
static int wait_for_all(struct mc_wait *wait)
{
    return wait->left ? duda_package_loader->wait(&wait->base, UINT32_MAX) : 0;
}

static void take_reply(struct mc_command *c, reply_t *ret)
{
    mc_command_explain(c);
    *ret = c->reply;
    c->reply.value = NULL;
    mc_command_put(c);
}

/* Returns the pool if a dthread may wait; else NULL with an error. */
static struct mc_pool *begin_wait(duda_memcached_t *cache, const char *call, struct mc_wait *wait, int *ret_err)
{
    char name[64];
    struct mc_pool *pool = find_pool(cache, call);
    if (!pool) {
        *ret_err = -EINVAL;
        return NULL;
    }
    snprintf(name, sizeof(name), "memcached->%s()", call);
    *ret_err = duda_package_loader->begin_wait(&wait->base, name);
    if (*ret_err == 0 && pool->worker->is_stopping)
        *ret_err = -ECANCELED;
    return *ret_err == 0 ? pool : NULL;
}

static int call_one(duda_memcached_t *cache, const char *name, const command_t *command, reply_t *ret)
{
    struct mc_wait wait = {.left = 1};
    struct mc_command *c;
    int err;
    *ret = (reply_t){0};
    struct mc_pool *pool = begin_wait(cache, name, &wait, &err);
    if (pool)
        err = mc_pool_submit(pool, command, &c);
    if (!pool || err < 0)
        return ret->result = err;
    c->wait = &wait;
    err = wait_for_all(&wait);
    if (err == 0) {
        take_reply(c, ret);
        return ret->result;
    }
    mc_command_abandon(c);
    return ret->result = err;
}

/* ── several commands ── */

struct batch {
    struct mc_pool *pool;
    struct mc_wait wait;
    unsigned n;
    struct mc_command **commands; /* NULL: it was not sent */
    reply_t *replies;
    int err; /* the first one */
    char text[MC_ERROR_BYTES];
};

static void note_result(struct batch *b, int result)
{
    if (b->err || result == 0 || result == -ENOENT)
        return;
    b->err = result;
    snprintf(b->text, sizeof(b->text), "%s", b->pool->error);
}

static void send_batch(struct batch *b, const command_t *commands)
{
    for (unsigned i = 0; i < b->n; i++) {
        b->replies[i] = (reply_t){0};
        b->commands[i] = NULL;
        int err = mc_pool_submit(b->pool, &commands[i], &b->commands[i]);
        b->replies[i].result = err;
        note_result(b, err);
        if (err < 0)
            continue;
        b->commands[i]->wait = &b->wait;
        b->wait.left++;
    }
}

static void take_batch(struct batch *b)
{
    for (unsigned i = 0; i < b->n; i++) {
        if (!b->commands[i])
            continue;
        take_reply(b->commands[i], &b->replies[i]);
        note_result(b, b->replies[i].result);
    }
    snprintf(b->pool->error, sizeof(b->pool->error), "%s", b->text);
}

static void abandon_batch(struct batch *b, int err)
{
    for (unsigned i = 0; i < b->n; i++) {
        b->replies[i].result = err;
        if (b->commands[i])
            mc_command_abandon(b->commands[i]);
    }
}

static int run_batch(struct batch *b, const command_t *commands)
{
    b->commands = mem->alloc(b->n * sizeof(struct mc_command *));
    if (!b->commands)
        return -ENOMEM;
    send_batch(b, commands);
    int err = wait_for_all(&b->wait);
    if (err < 0) {
        abandon_batch(b, err);
    } else {
        take_batch(b);
        err = b->err;
    }
    mem->free(b->commands);
    return err;
}

static int call_all(duda_memcached_t *cache, const char *name, const command_t *commands, unsigned n, reply_t *ret)
{
    int err;
    struct batch b = {.n = n, .replies = ret};
    b.pool = begin_wait(cache, name, &b.wait, &err);
    if (!b.pool)
        return err;
    if (!ret || n > DUDA_MEMCACHED_MANY_MAX || (n && !commands))
        return mc_refuse(b.pool->worker, name, -EINVAL, "it takes up to 1,024 commands, and their replies");
    return n ? run_batch(&b, commands) : 0;
}

static int call_many(duda_memcached_t *cache, const command_t *commands, unsigned n, reply_t *ret)
{
    return call_all(cache, "call_many", commands, n, ret);
}

static int fetch_many(duda_memcached_t *cache, const char *const *keys, unsigned n, reply_t *ret)
{
    command_t *commands = n && n <= DUDA_MEMCACHED_MANY_MAX ? mem->alloc_z(n * sizeof(*commands)) : NULL;
    for (unsigned i = 0; commands && i < n; i++)
        commands[i] = (command_t){.op = DUDA_MEMCACHED_FETCH, .key = keys[i]};
    int err =
        n && n <= DUDA_MEMCACHED_MANY_MAX && !commands ? -ENOMEM : call_all(cache, "fetch_many", commands, n, ret);
    mem->free(commands);
    return err;
}

/* ── one command ── */

static int call_as(duda_memcached_t *cache, const char *name, const command_t *command, reply_t *ret)
{
    reply_t reply;
    int err = call_one(cache, name, command, ret ? ret : &reply);
    if (!ret)
        mem->free(reply.value);
    return err;
}

static int call_server(duda_memcached_t *cache, const command_t *command, reply_t *ret)
{
    return call_as(cache, "call", command, ret);
}

static int fetch_value(duda_memcached_t *cache, const char *key, reply_t *ret)
{
    return call_as(cache, "fetch", &(command_t){.op = DUDA_MEMCACHED_FETCH, .key = key}, ret);
}

static int store_value(duda_memcached_t *cache, const char *key, const void *value, size_t len, uint32_t ttl_s)
{
    command_t command = {.op = DUDA_MEMCACHED_STORE, .key = key, .value = value, .len = len, .ttl_s = ttl_s};
    return call_as(cache, "store", &command, NULL);
}

static int add_value(duda_memcached_t *cache, const char *key, const void *value, size_t len, uint32_t ttl_s)
{
    command_t command = {.op = DUDA_MEMCACHED_ADD, .key = key, .value = value, .len = len, .ttl_s = ttl_s};
    return call_as(cache, "add", &command, NULL);
}

static int replace_value(duda_memcached_t *cache, const char *key, const void *value, size_t len, uint32_t ttl_s)
{
    command_t command = {.op = DUDA_MEMCACHED_REPLACE, .key = key, .value = value, .len = len, .ttl_s = ttl_s};
    return call_as(cache, "replace", &command, NULL);
}

static int append_value(duda_memcached_t *cache, const char *key, const void *value, size_t len)
{
    command_t command = {.op = DUDA_MEMCACHED_APPEND, .key = key, .value = value, .len = len};
    return call_as(cache, "append", &command, NULL);
}

static int prepend_value(duda_memcached_t *cache, const char *key, const void *value, size_t len)
{
    command_t command = {.op = DUDA_MEMCACHED_PREPEND, .key = key, .value = value, .len = len};
    return call_as(cache, "prepend", &command, NULL);
}

static int remove_key(duda_memcached_t *cache, const char *key)
{
    return call_as(cache, "remove", &(command_t){.op = DUDA_MEMCACHED_REMOVE, .key = key}, NULL);
}

static int touch_key(duda_memcached_t *cache, const char *key, uint32_t ttl_s)
{
    return call_as(cache, "touch", &(command_t){.op = DUDA_MEMCACHED_TOUCH, .key = key, .ttl_s = ttl_s}, NULL);
}

static int invalidate_key(duda_memcached_t *cache, const char *key, uint32_t ttl_s)
{
    command_t command = {.op = DUDA_MEMCACHED_INVALIDATE, .key = key, .ttl_s = ttl_s};
    return call_as(cache, "invalidate", &command, NULL);
}

/* memcached creates a number with its initial value, to which `n` is not added. */
static int change_number(duda_memcached_t *cache, const char *name, const command_t *command, uint64_t *ret)
{
    reply_t reply;
    int err = call_one(cache, name, command, &reply);
    if (err == 0 && ret)
        *ret = reply.number;
    return err;
}

static int increase_number(duda_memcached_t *cache, const char *key, uint64_t n, uint32_t ttl_s, uint64_t *ret)
{
    command_t command = {
        .op = DUDA_MEMCACHED_INCREASE, .key = key, .n = n, .ttl_s = ttl_s, .creates = true, .initial = n};
    return change_number(cache, "increase", &command, ret);
}

static int decrease_number(duda_memcached_t *cache, const char *key, uint64_t n, uint32_t ttl_s, uint64_t *ret)
{
    command_t command = {
        .op = DUDA_MEMCACHED_DECREASE, .key = key, .n = n, .ttl_s = ttl_s, .creates = true, .initial = 0};
    return change_number(cache, "decrease", &command, ret);
}

static int recache_key(duda_memcached_t *cache, const char *key, uint32_t wait_s, uint32_t recache_s, reply_t *ret)
{
    command_t command = {.op = DUDA_MEMCACHED_RECACHE, .key = key, .ttl_s = wait_s, .recache_s = recache_s};
    return call_as(cache, "recache", &command, ret);
}

/* ── callbacks ── */

/* The request has ended. */
static void leave_request(void *data)
{
    struct mc_watch *watch = data;
    if (watch->command) {
        watch->command->dr = NULL;
        watch->command->watch = NULL;
    }
    mem->free(watch);
}

/* Has the command know when the request ends. */
static int watch_request(struct mc_command *c, duda_request_t *dr)
{
    struct mc_watch *watch = mem->alloc(sizeof(*watch));
    if (!watch)
        return -ENOMEM;
    watch->command = c;
    if (gc->add_destroy(dr, watch, leave_request) < 0) {
        mem->free(watch);
        return -ENOMEM;
    }
    c->watch = watch;
    c->dr = dr;
    return 0;
}

static int send_command(duda_memcached_t *cache, duda_request_t *dr, const command_t *command, duda_memcached_fn fn,
                        void *data)
{
    struct mc_command *c;
    struct mc_pool *pool = find_pool(cache, "send");
    if (!pool)
        return -EINVAL;
    if (dr && duda_package_loader->worker_of(&mc_package, dr) != pool->worker->base)
        return mc_refuse(pool->worker, "send", -EINVAL, "the request has ended, or belongs to another worker");
    if (pool->worker->is_stopping)
        return -ECANCELED;
    int err = mc_pool_submit(pool, command, &c);
    if (err < 0)
        return err;
    if (fn && dr)
        err = watch_request(c, dr);
    if (err < 0 || !fn) {
        mc_command_abandon(c);
        return err;
    }
    c->fn = fn;
    c->data = data;
    return 0;
}

static const char *get_error(duda_memcached_t *cache)
{
    const struct mc_pool *pool = find_pool(cache, "error");
    return pool ? pool->error : "";
}

const struct duda_api_memcached mc_calls = {
    .open = mc_open,
    .fetch = fetch_value,
    .store = store_value,
    .add = add_value,
    .replace = replace_value,
    .append = append_value,
    .prepend = prepend_value,
    .remove = remove_key,
    .touch = touch_key,
    .increase = increase_number,
    .decrease = decrease_number,
    .recache = recache_key,
    .invalidate = invalidate_key,
    .fetch_many = fetch_many,
    .call = call_server,
    .call_many = call_many,
    .send = send_command,
    .error = get_error,
};

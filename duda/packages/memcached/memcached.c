// SPDX-License-Identifier: Apache-2.0
/*
 * The package memcached: what it has for each service and worker, and what duda_main() calls.
 */
#include "memcached.h"

#include "hash.h"

#include <duda/mem.h>
#include <duda/msg.h>

#include <errno.h>
#include <stdio.h>

enum {
    API_ERROR_INTERVAL_MS = 10000,
    PORT = 11211,
    ARENA_BYTES_MAX = 64 << 10,
    VALUE_BYTES_MAX = 64 << 20,
    TEXT_BYTES = 320,
};

/* ── mistakes ── */

int mc_refuse(struct mc_worker *w, const char *call, int err, const char *reason)
{
    uint64_t now_ms = w && w->base->loop ? mk_loop_now_ms(w->base->loop) : 0;
    if (now_ms && w->api_error_ms && now_ms - w->api_error_ms < API_ERROR_INTERVAL_MS)
        return err;
    if (now_ms)
        w->api_error_ms = now_ms;
    msg->warn("memcached->%s(): %s", call, reason);
    return err;
}

void mc_count(struct mc_worker *w, const struct mk_counter *counter)
{
    duda_package_loader->count(w->base, counter, 1);
}

/* ── open() ── */

struct number {
    const char *name;
    size_t offset;
    uint32_t otherwise, most;
};

static const struct number numbers[] = {
    {"connect_timeout_ms", offsetof(struct duda_memcached_conf, connect_timeout_ms), 1000, 60000},
    {"timeout_ms", offsetof(struct duda_memcached_conf, timeout_ms), 1000, 60000},
    {"connections_max", offsetof(struct duda_memcached_conf, connections_max), 2, MC_CONNECTIONS_MAX},
    {"pending_max", offsetof(struct duda_memcached_conf, pending_max), 10000, 1000000},
    {"value_bytes_max", offsetof(struct duda_memcached_conf, value_bytes_max), 1 << 20, VALUE_BYTES_MAX},
    {"queue_bytes_max", offsetof(struct duda_memcached_conf, queue_bytes_max), 16 << 20, 256 << 20},
};

/* Fills in the defaults. Returns whether all numbers are within their limits; else with a clause. */
static bool set_numbers(struct duda_memcached_conf *conf, char *ret_error, size_t size)
{
    for (size_t i = 0; i < MK_COUNT_OF(numbers); i++) {
        uint32_t *field = (uint32_t *)(void *)((char *)conf + numbers[i].offset);
        if (!*field)
            *field = numbers[i].otherwise;
        if (*field <= numbers[i].most)
            continue;
        snprintf(ret_error, size, "%s is %u at most", numbers[i].name, numbers[i].most);
        return false;
    }
    if (conf->queue_bytes_max >= conf->value_bytes_max + 2 * MC_HEAD_BYTES_MAX)
        return true;
    snprintf(ret_error, size, "queue_bytes_max must be 1024 above value_bytes_max");
    return false;
}

/* Cuts the next server off a list; empty at its end. */
static struct mk_str take_server(struct mk_str *rest)
{
    static const char separators[] = " ,\t\n";
    while (rest->len && mk_is_one_of(*rest->p, separators))
        *rest = mk_str_after(*rest, 1);
    struct mk_str word = mk_str_until(*rest, separators);
    *rest = mk_str_after(*rest, word.len);
    return word;
}

static bool has_target(const struct duda_memcached *cache, struct mk_str text)
{
    for (unsigned i = 0; i < cache->n; i++)
        if (mk_str_eq(cache->targets[i].options.target->text, text))
            return true;
    return false;
}

static struct mk_upstream_options make_options(const struct duda_memcached_conf *conf,
                                               const struct mk_dial_target *target)
{
    return (struct mk_upstream_options){
        .name = "memcached",
        .target = target,
        .connect_timeout_ms = conf->connect_timeout_ms,
        .timeout_ms = conf->timeout_ms,
        .timeouts_max = 1,
        .closes_late = true,
        .redials_at_once = true,
        .pending_max = conf->pending_max + 1, /* and mn; the pool counts the others */
        .queue_bytes_max = conf->queue_bytes_max,
    };
}

static bool add_target(struct duda_memcached *cache, struct mk_str text, char *ret_error, size_t size)
{
    const char *error = NULL;
    const struct mk_dial_target *dial;
    struct mc_target *target = &cache->targets[cache->n];
    if (cache->n == DUDA_MEMCACHED_SERVERS_MAX)
        error = "there are more than 64 servers";
    else if (has_target(cache, text))
        error = "it is there twice";
    else if (mk_dial_target_parse(&cache->arena, text, PORT, &dial, &error) == 0) {
        target->options = make_options(&cache->conf, dial);
        target->hash = mc_hash(text);
        cache->n++;
        return true;
    }
    snprintf(ret_error, size, "server \"%.*s\": %s", (int)(text.len < 100 ? text.len : 100), text.p, error);
    return false;
}

static bool add_targets(struct duda_memcached *cache, char *ret_error, size_t size)
{
    struct mk_str rest = mk_str_c(cache->conf.servers ? cache->conf.servers : "127.0.0.1:11211");
    for (struct mk_str word = take_server(&rest); word.len; word = take_server(&rest))
        if (!add_target(cache, word, ret_error, size))
            return false;
    if (!cache->n)
        snprintf(ret_error, size, "`servers` has no server");
    return cache->n;
}

static void free_cache(struct duda_memcached *cache)
{
    mk_arena_release(&cache->arena);
    mem->free(cache);
}

static struct duda_memcached *make_cache(const struct duda_memcached_conf *conf, char *ret_error, size_t size)
{
    struct duda_memcached *cache = mem->alloc_z(sizeof(*cache));
    snprintf(ret_error, size, "%s", strerror(ENOMEM));
    if (!cache)
        return NULL;
    mk_arena_init(&cache->arena, NULL, ARENA_BYTES_MAX, NULL, 0);
    if (conf)
        cache->conf = *conf;
    if (set_numbers(&cache->conf, ret_error, size) && add_targets(cache, ret_error, size)) {
        cache->conf.servers = NULL;
        return cache;
    }
    free_cache(cache);
    return NULL;
}

duda_memcached_t *mc_open(const struct duda_memcached_conf *conf)
{
    struct mc_service *service = duda_package_loader->service_state(&mc_package);
    char error[TEXT_BYTES] = "it works only in duda_main()";
    struct duda_memcached *cache = NULL;
    if (service && service->n == MC_CACHES_MAX)
        snprintf(error, sizeof(error), "the service has 16 already");
    else if (service && !atomic_load(&service->started))
        cache = make_cache(conf, error, sizeof(error));
    if (!cache) {
        mc_refuse(NULL, "open", 0, error);
        return NULL;
    }
    cache->service = service;
    cache->index = service->n++;
    cache->next = service->first;
    service->first = cache;
    return cache;
}

/* ── services ── */

static const struct mk_counter *open_counter(const char *name, const char *help)
{
    return duda_package_loader->counter(&mc_package, name, help, false);
}

static void *start_service(void)
{
    struct mc_service *service = mem->alloc_z(sizeof(*service));
    if (!service)
        return NULL;
    service->counters = (struct mc_counters){
        .commands = open_counter("memcached_commands", "commands to memcached, by host and service"),
        .hits = open_counter("memcached_hits", "values and items that memcached had, by host and service"),
        .misses = open_counter("memcached_misses", "values and items that memcached did not have, by host and service"),
        .errors = open_counter("memcached_errors", "commands to memcached that have failed, by host and service"),
        .connections = open_counter("memcached_connections", "connections made to memcached, by host and service"),
    };
    return service;
}

static void stop_service(void *state)
{
    struct mc_service *service = state;
    while (service->first) {
        struct duda_memcached *cache = service->first;
        service->first = cache->next;
        free_cache(cache);
    }
    mem->free(service);
}

/* ── workers ── */

static void enter_service(struct mk_upstream_pool *pool, void (*fn)(void *data), void *data)
{
    duda_package_loader->call(MK_CONTAINER_OF(pool, struct mc_worker, upstreams)->base, fn, data);
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
    struct mc_service *service = base->service_state;
    unsigned n_servers = 0;
    atomic_store(&service->started, true);
    for (const struct duda_memcached *cache = service->first; cache; cache = cache->next)
        n_servers += cache->n;
    struct mc_worker *w = mem->alloc_z(sizeof(*w) + service->n * sizeof(w->pools[0]));
    struct mc_server *servers = mem->alloc_z((n_servers + 1) * sizeof(*servers));
    char *buffer = mem->alloc(MK_UPSTREAM_READ_BYTES);
    if (!w || !servers || !buffer) {
        mem->free(buffer);
        mem->free(w);
        mem->free(servers);
        return -ENOMEM;
    }
    w->base = base;
    w->loop = base->loop;
    w->buffer = buffer;
    mk_buf_init(&w->scratch, VALUE_BYTES_MAX + MC_HEAD_BYTES_MAX);
    mk_upstream_pool_init(&w->upstreams, base->loop, buffer);
    w->upstreams.enter = enter_service;
    w->upstreams.log = log_server;
    w->service = service;
    w->servers = servers;
    w->n_pools = service->n;
    for (const struct duda_memcached *cache = service->first; cache; cache = cache->next) {
        mc_pool_init(&w->pools[cache->index], w, cache, servers);
        servers += cache->n;
    }
    base->state = w;
    return 0;
}

static void stop_worker(struct duda_package_worker *base)
{
    struct mc_worker *w = base->state;
    w->is_stopping = true; /* callbacks may not send any more */
    for (unsigned i = 0; i < w->n_pools; i++)
        mc_pool_stop(&w->pools[i], base->loop);
    base->state = NULL;
    mem->free(w->buffer);
    mk_buf_release(&w->scratch);
    mem->free(w->servers);
    mem->free(w);
}

DUDA_PACKAGE_MAIN(mc_package, "memcached", "2.0.0", &mc_calls, .service_start = start_service,
                  .service_stop = stop_service, .worker_start = start_worker, .worker_stop = stop_worker)

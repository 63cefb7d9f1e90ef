// SPDX-License-Identifier: Apache-2.0
/*
 * Keeps servers (servers.h).
 */
#include "servers.h"

#include <monkey/counters.h>
#include <monkey/log.h>

#include <errno.h>
#include <pthread.h>

enum { ARENA_BYTES_MAX = 65536, EJECTIONS_MAX = 16 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct server *first; /* under the lock */

static const struct mk_counter_info infos[SERVER_COUNTS] = {
    [SERVER_REQUESTS] = {"upstream", "server_requests", "requests that were passed to a server of a group",
                         MK_COUNTER_SUM},
    [SERVER_ACTIVE] = {"upstream", "server_active_requests", "requests that are with a server of a group",
                       MK_COUNTER_LEVEL},
    [SERVER_FAILURES] = {"upstream", "server_failures", "requests that a server of a group has failed", MK_COUNTER_SUM},
    [SERVER_EJECTIONS] = {"upstream", "server_ejections", "times that a server of a group got no requests for a while",
                          MK_COUNTER_SUM},
};

static void open_counters(struct server *server)
{
    const struct mk_counter_label labels[] = {{"upstream", server->base.group}, {"server", server->base.name}};
    for (unsigned i = 0; i < SERVER_COUNTS; i++)
        server->counters[i] = mk_counter_open(&infos[i], labels, MK_COUNT_OF(labels));
}

static int init_server(struct server *server, struct mk_str name)
{
    const char *why;
    struct mk_upstream_server *base = &server->base;
    mk_arena_init(&server->arena, NULL, ARENA_BYTES_MAX, NULL, 0);
    base->group = server->pool->name;
    base->name = mk_arena_dup(&server->arena, name);
    if (!base->name.p)
        return -ENOMEM;
    return mk_dial_target_parse(&server->arena, base->name, UPSTREAM_PORT, &base->target, &why);
}

static void free_server(struct server *server)
{
    pool_release(server->pool);
    mk_arena_release(&server->arena);
    mk_account_free(NULL, server, sizeof(*server));
}

static struct server *make_server(struct pool *pool, struct mk_str name)
{
    struct server *server = mk_account_alloc(NULL, sizeof(*server));
    if (!server)
        return NULL;
    *server = (struct server){.next = first, .pool = pool_hold(pool->name)};
    if (init_server(server, name) < 0) {
        free_server(server);
        return NULL;
    }
    open_counters(server);
    first = server;
    return server;
}

struct server *servers_hold(struct pool *pool, struct mk_str name)
{
    pthread_mutex_lock(&lock);
    struct server *server = first;
    while (server && !(server->pool == pool && mk_str_eq(server->base.name, name)))
        server = server->next;
    if (!server)
        server = make_server(pool, name);
    if (server)
        server->refs++;
    pthread_mutex_unlock(&lock);
    return server;
}

void server_release(struct server *server)
{
    pthread_mutex_lock(&lock);
    bool is_last = --server->refs == 0;
    if (is_last) {
        struct server **at = &first;
        while (*at != server)
            at = &(*at)->next;
        *at = server->next;
    }
    pthread_mutex_unlock(&lock);
    if (is_last)
        free_server(server);
}

static bool is_used(struct mk_str label, void *ctx)
{
    (void)ctx;
    for (const struct server *server = first; server; server = server->next) {
        struct mk_str name = server->base.name;
        if (mk_str_eq(mk_str(name.p, name.len < MK_COUNTER_LABEL_MAX ? name.len : MK_COUNTER_LABEL_MAX), label))
            return true;
    }
    return false;
}

void servers_hide_unused(void)
{
    pthread_mutex_lock(&lock);
    mk_counters_hide("upstream", "server", is_used, NULL);
    pthread_mutex_unlock(&lock);
}

/* ── requests ── */

void server_note_begin(struct server *server, const struct mk_worker *worker)
{
    mk_counter_add(server->counters[SERVER_REQUESTS], worker, 1);
    mk_counter_add(server->counters[SERVER_ACTIVE], worker, 1);
}

void server_end(struct server *server, const struct mk_worker *worker)
{
    atomic_fetch_sub(&server->load, 1);
    mk_counter_add(server->counters[SERVER_ACTIVE], worker, -1);
}

void server_note_response(struct server *server)
{
    if (atomic_load_explicit(&server->failures, memory_order_relaxed))
        atomic_store_explicit(&server->failures, 0, memory_order_relaxed);
    if (!atomic_load_explicit(&server->ejections, memory_order_relaxed))
        return;
    if (atomic_exchange(&server->ejections, 0))
        mk_log_info("upstream %.*s: %.*s responds again", MK_STR_ARG(server->base.group),
                    MK_STR_ARG(server->base.name));
    atomic_store(&server->ejected_until, 0);
}

bool server_readmit(struct server *server)
{
    atomic_store(&server->failures, 0);
    bool was_ejected = atomic_exchange(&server->ejections, 0) > 0;
    atomic_store(&server->ejected_until, 0);
    return was_ejected;
}

void server_note_failure(struct server *server, const struct upstream_conf *conf, const struct mk_worker *worker,
                         uint64_t now_ms)
{
    mk_counter_add(server->counters[SERVER_FAILURES], worker, 1);
    uint32_t failures = atomic_fetch_add(&server->failures, 1) + 1;
    uint64_t until = atomic_load(&server->ejected_until);
    if (!conf->eject_after || failures < conf->eject_after || until > now_ms)
        return;
    uint32_t ejections = atomic_load(&server->ejections);
    uint64_t ms = (uint64_t)conf->eject_time_ms << (ejections < EJECTIONS_MAX ? ejections : EJECTIONS_MAX);
    ms = ms < EJECT_MS_MAX ? ms : EJECT_MS_MAX;
    if (!atomic_compare_exchange_strong(&server->ejected_until, &until, now_ms + ms))
        return; /* another worker has ejected it */
    atomic_store(&server->ejections, ejections + 1);
    atomic_store(&server->slow_from_ms, now_ms + ms);
    mk_counter_add(server->counters[SERVER_EJECTIONS], worker, 1);
    mk_log_warn("upstream %.*s: %.*s has failed %u times in a row, and gets no requests for %llu ms",
                MK_STR_ARG(server->base.group), MK_STR_ARG(server->base.name), failures, (unsigned long long)ms);
}

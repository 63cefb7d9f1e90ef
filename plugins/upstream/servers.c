// SPDX-License-Identifier: Apache-2.0
#include "servers.h"

#include <monkey/base/random.h>
#include <monkey/counters.h>
#include <monkey/log.h>

#include <errno.h>

enum { ARENA_BYTES_MAX = 65536, EJECTIONS_MAX = 16, REASON_BYTES = 256 };

struct mk_epoch_queue *servers_retired(void)
{
    return &upstream_process.retired;
}

static const struct mk_counter_info infos[SERVER_COUNTS] = {
    [SERVER_REQUESTS] = {"upstream", "server_requests", "requests that were passed to a server of a group",
                         MK_COUNTER_SUM},
    [SERVER_ACTIVE] = {"upstream", "server_active_requests", "requests that are with a server of a group",
                       MK_COUNTER_LEVEL},
    [SERVER_WAITED] = {"upstream", "server_waited_requests",
                       "requests that waited before they were passed to a server of a group", MK_COUNTER_SUM},
    [SERVER_FAILURES] = {"upstream", "server_failures", "requests that a server of a group has failed", MK_COUNTER_SUM},
    [SERVER_EJECTIONS] = {"upstream", "server_ejections", "times that a server of a group got no requests for a while",
                          MK_COUNTER_SUM},
    [SERVER_EJECTED] = {"upstream", "server_ejected", "1 while a server of a group is ejected, until it is tried again",
                        MK_COUNTER_LEVEL},
    [SERVER_CHECKS] = {"upstream", "server_checks", "checks of a server of a group", MK_COUNTER_SUM},
    [SERVER_FAILED_CHECKS] = {"upstream", "server_failed_checks", "checks that a server of a group has failed",
                              MK_COUNTER_SUM},
    [SERVER_UP] = {"upstream", "server_up", "1, or 0 if a server of a group is down by its checks", MK_COUNTER_LEVEL},
    [SERVER_DOWN] = {"upstream", "server_down", "1 while a server of a group is down by its checks", MK_COUNTER_LEVEL},
};

/* They belong to the line: one of `srv:` may have no server for a while. Under the lock. */
static void hold_counters(struct server *server)
{
    const struct mk_counter_label labels[] = {{"upstream", server->base.group}, {"server", server->base.name}};
    const struct mk_counter **of_line = server->admin->server_counters;
    for (unsigned i = 0; i < SERVER_COUNTS; i++) {
        if (!of_line[i])
            of_line[i] = mk_counter_hold(&infos[i], labels, MK_COUNT_OF(labels));
        server->counters[i] = of_line[i];
    }
}

/* The key of an address: the line and the address. */
static struct mk_str make_key(struct server *server)
{
    const struct mk_upstream_server *base = &server->base;
    size_t len = base->name.len + 1 + base->address.len;
    char *key = mk_arena_alloc(&server->arena, len);
    if (!key)
        return MK_STR_NONE;
    memcpy(key, base->name.p, base->name.len);
    key[base->name.len] = ' ';
    memcpy(key + base->name.len + 1, base->address.p, base->address.len);
    return mk_str(key, len);
}

static int init_server(struct server *server, struct mk_str name, struct mk_str address)
{
    const char *why;
    struct mk_upstream_server *base = &server->base;
    mk_arena_init(&server->arena, NULL, ARENA_BYTES_MAX, NULL, 0);
    base->group = server->pool->name;
    base->name = mk_arena_dup(&server->arena, name);
    base->address = address.len ? mk_arena_dup(&server->arena, address) : base->name;
    if (!base->name.p || !base->address.p)
        return -ENOMEM;
    base->key = address.len ? make_key(server) : base->name;
    if (!base->key.p)
        return -ENOMEM;
    return mk_dial_target_parse(&server->arena, base->address, UPSTREAM_PORT, &base->target, &why);
}

/* Returns whether there was an ejection. Any thread. */
static bool end_ejection(struct server *server, const struct mk_worker *worker)
{
    bool was_ejected = atomic_exchange(&server->ejected_until, 0) != 0;
    if (was_ejected)
        mk_counter_add(server->counters[SERVER_EJECTED], worker, -1);
    return was_ejected;
}

static void free_server(struct server *server)
{
    admin_release(server->admin);
    pool_release(server->pool);
    mk_arena_release(&server->arena);
    mk_account_free(NULL, server, sizeof(*server));
}

static struct server *make_server(struct pool *pool, struct mk_str name, struct mk_str address)
{
    struct server *server = mk_account_alloc(NULL, sizeof(*server));
    if (!server)
        return NULL;
    *server = (struct server){.next = upstream_process.servers,
                              .pool = pool_hold(pool->name),
                              .admin = admin_hold(pool->name, name)};
    int err = init_server(server, name, address);
    if (!server->admin || err < 0) {
        free_server(server);
        return NULL;
    }
    hold_counters(server);
    mk_counter_add(server->counters[SERVER_UP], NULL, 1);
    upstream_process.servers = server;
    return server;
}

static bool is_server(const struct server *server, const struct pool *pool, struct mk_str name, struct mk_str address)
{
    const struct mk_upstream_server *base = &server->base;
    return server->pool == pool && mk_str_eq(base->address, address.len ? address : name) &&
           mk_str_eq(base->name, name);
}

struct server *servers_hold(struct pool *pool, struct mk_str name, struct mk_str address)
{
    lock_take(&upstream_process.servers_lock);
    struct server *server = upstream_process.servers;
    while (server && !is_server(server, pool, name, address))
        server = server->next;
    if (!server)
        server = make_server(pool, name, address);
    if (server) {
        server->refs++;
        upstream_process.gone_servers -= server->is_gone;
        server->is_gone = false;
    }
    lock_release(&upstream_process.servers_lock);
    return server;
}

static void free_retired(struct mk_retired *retired)
{
    free_server(MK_CONTAINER_OF(retired, struct server, retired));
}

/*
 * Frees a server that no list has, unless it has requests: the last of these comes back here, with a server that may be
 * gone by then. The loops in which they were may see it until their turns end.
 */
static void free_unused(struct server *server)
{
    lock_take(&upstream_process.servers_lock);
    struct server **at = &upstream_process.servers;
    while (*at && *at != server)
        at = &(*at)->next;
    bool is_unused = *at && server->is_gone && !server->load;
    if (is_unused) {
        *at = server->next;
        upstream_process.gone_servers--;
        /* it is counted no more, although a loop may see it for a while: hidden counters must not change */
        end_ejection(server, NULL);
        mk_counter_add(server->counters[server_is_down(server) ? SERVER_DOWN : SERVER_UP], NULL, -1);
    }
    lock_release(&upstream_process.servers_lock);
    if (!is_unused)
        return;
    mk_epoch_retire(&upstream_process.retired, &server->retired, free_retired);
    mk_epoch_reclaim(&upstream_process.retired);
}

void server_get(struct server *server)
{
    lock_take(&upstream_process.servers_lock);
    server->refs++;
    lock_release(&upstream_process.servers_lock);
}

void server_release(struct server *server)
{
    lock_take(&upstream_process.servers_lock);
    bool is_last = --server->refs == 0;
    if (is_last) {
        server->is_gone = true;
        upstream_process.gone_servers++;
    }
    lock_release(&upstream_process.servers_lock);
    if (is_last)
        free_unused(server);
}

/* ── requests ── */

void server_note_begin(struct server *server, const struct mk_worker *worker)
{
    mk_counter_add(server->counters[SERVER_REQUESTS], worker, 1);
    mk_counter_add(server->counters[SERVER_ACTIVE], worker, 1);
}

void server_drop_load(struct server *server)
{
    if (atomic_fetch_sub(&server->load, 1) == 1 &&
        upstream_process.gone_servers) /* another thread may free it by now */
        free_unused(server);
}

void server_end(struct server *server, const struct mk_worker *worker)
{
    mk_counter_add(server->counters[SERVER_ACTIVE], worker, -1);
    server_drop_load(server);
}

void server_note_chosen(struct server *server, uint64_t now_ms)
{
    uint64_t until = atomic_load_explicit(&server->ejected_until, memory_order_relaxed);
    if (until && until <= now_ms && end_ejection(server, NULL))
        mk_log_limited(MK_LOG_INFO, server, "upstream %.*s: %.*s is tried again", MK_STR_ARG(server->base.group),
                       MK_STR_ARG(server->base.address));
}

void server_note_response(struct server *server, const struct mk_worker *worker)
{
    if (atomic_load_explicit(&server->failures, memory_order_relaxed))
        atomic_store_explicit(&server->failures, 0, memory_order_relaxed);
    if (!atomic_load_explicit(&server->ejections, memory_order_relaxed))
        return;
    if (atomic_exchange(&server->ejections, 0))
        mk_log_limited(MK_LOG_INFO, server, "upstream %.*s: %.*s responds again", MK_STR_ARG(server->base.group),
                       MK_STR_ARG(server->base.address));
    end_ejection(server, worker);
}

bool server_readmit(struct server *server)
{
    atomic_store(&server->failures, 0);
    bool was_ejected = atomic_exchange(&server->ejections, 0) > 0;
    end_ejection(server, NULL);
    return was_ejected;
}

static void log_ejection(const struct server *server, const struct mk_upstream_outcome *outcome, uint32_t failures,
                         uint64_t ms)
{
    MK_BUF_ON_STACK(reason, REASON_BYTES);
    eject_write_reason(outcome, &reason);
    mk_log_limited(
        MK_LOG_WARN, server,
        "upstream %.*s: %.*s has failed %u times in a row, and gets no requests for %llu ms; the last time: %s",
        MK_STR_ARG(server->base.group), MK_STR_ARG(server->base.address), failures, (unsigned long long)ms,
        mk_buf_cstr(&reason));
}

void server_note_failure(struct server *server, const struct upstream_conf *conf,
                         const struct mk_upstream_outcome *outcome, const struct mk_worker *worker, uint64_t now_ms)
{
    mk_counter_add(server->counters[SERVER_FAILURES], worker, 1);
    uint32_t failures = atomic_fetch_add(&server->failures, 1) + 1;
    uint64_t until = atomic_load(&server->ejected_until);
    if (!conf->eject_after || failures < conf->eject_after || until > now_ms ||
        admin_get_state(server->admin) != ADMIN_UP) /* its operator keeps requests from it */
        return;
    uint32_t ejections = atomic_load(&server->ejections);
    uint64_t ms = (uint64_t)conf->eject_time_ms << (ejections < EJECTIONS_MAX ? ejections : EJECTIONS_MAX);
    ms = ms < EJECT_MS_MAX ? ms : EJECT_MS_MAX;
    if (!atomic_compare_exchange_strong(&server->ejected_until, &until, now_ms + ms))
        return; /* another worker has ejected it */
    if (!until)
        mk_counter_add(server->counters[SERVER_EJECTED], worker, 1);
    atomic_store(&server->ejections, ejections + 1);
    atomic_store(&server->slow_from_ms, now_ms + ms);
    mk_counter_add(server->counters[SERVER_EJECTIONS], worker, 1);
    log_ejection(server, outcome, failures, ms);
}

/* ── checks ── */

uint64_t server_begin_checks(struct server *server, uint64_t id, uint64_t now_ms)
{
    struct server_checks *c = &server->checks;
    lock_take(&upstream_process.servers_lock);
    if (c->id != id) {
        c->id = id;
        c->next_ms = now_ms;
        c->state.in_row = 0;
    }
    uint64_t wait = c->next_ms > now_ms ? c->next_ms - now_ms : 0;
    lock_release(&upstream_process.servers_lock);
    return wait;
}

/* Returns what it was before. */
static uint8_t set_health(struct server *server, uint8_t health, const struct mk_worker *worker, uint64_t now_ms)
{
    uint8_t before = atomic_exchange(&server->health, health);
    int change = (before == HEALTH_DOWN) - (health == HEALTH_DOWN);
    if (change > 0)
        atomic_store(&server->slow_from_ms, now_ms);
    if (change) {
        mk_counter_add(server->counters[SERVER_UP], worker, change);
        mk_counter_add(server->counters[SERVER_DOWN], worker, -change);
    }
    return before;
}

/* The state that the operator has set takes precedence over checks. */
static void log_up(const struct server *server, unsigned in_row, bool was_down, bool was_ejected)
{
    static const char *const results[ADMIN_STATES] = {
        [ADMIN_UP] = "gets requests again",
        [ADMIN_DRAIN] = "gets only requests whose cookie names it: it is set to drain",
        [ADMIN_DOWN] = "gets no requests: it is set to down",
    };
    mk_log_info("upstream %.*s: %.*s is up, and %s (successful checks in a row: %u%s)", MK_STR_ARG(server->base.group),
                MK_STR_ARG(server->base.address), results[admin_get_state(server->admin)], in_row,
                !was_ejected ? ""
                : was_down   ? "; its ejection has ended, too"
                             : "; its ejection has ended");
}

static void log_transition(const struct server *server, uint8_t before, const struct health_state *s,
                           const char *reason, bool was_ejected)
{
    bool was_down = before == HEALTH_DOWN, is_down = s->health == HEALTH_DOWN;
    if (is_down && !was_down)
        mk_log_warn("upstream %.*s: %.*s is down, and gets no requests: %s (failed checks in a row: %u)",
                    MK_STR_ARG(server->base.group), MK_STR_ARG(server->base.address), reason, s->in_row);
    else if (!is_down && (was_down || was_ejected))
        log_up(server, s->in_row, was_down, was_ejected);
}

/*
 * A check has succeeded: an ejection ends. The failures in a row stay, so that a server which fails requests but no
 * checks is ejected again by the next one, for longer.
 */
static bool end_ejection_by_check(struct server *server, const struct mk_worker *worker, uint64_t now_ms)
{
    bool was_ejected = server_is_ejected(server, now_ms);
    if (was_ejected)
        atomic_store(&server->slow_from_ms, now_ms);
    return end_ejection(server, worker) && was_ejected;
}

uint32_t server_note_check(struct server *server, const struct health_rules *rules, const char *reason,
                           const struct mk_worker *worker, uint64_t now_ms)
{
    uint32_t random = 0;
    mk_random(&random, sizeof(random)); /* any will do */
    mk_counter_add(server->counters[SERVER_CHECKS], worker, 1);
    if (reason)
        mk_counter_add(server->counters[SERVER_FAILED_CHECKS], worker, 1);
    lock_take(&upstream_process.servers_lock);
    struct health_state s = server->checks.state = health_next(server->checks.state, rules, !reason);
    uint32_t wait = health_get_wait_ms(&s, rules, random);
    server->checks.next_ms = now_ms + wait;
    uint8_t before = set_health(server, s.health, worker, now_ms);
    lock_release(&upstream_process.servers_lock);
    bool was_ejected = !reason && s.health != HEALTH_DOWN && end_ejection_by_check(server, worker, now_ms);
    log_transition(server, before, &s, reason, was_ejected);
    return wait;
}

void server_end_checks(struct server *server, const struct mk_worker *worker, uint64_t now_ms)
{
    lock_take(&upstream_process.servers_lock);
    server->checks = (struct server_checks){0};
    uint8_t before = set_health(server, HEALTH_UNKNOWN, worker, now_ms);
    lock_release(&upstream_process.servers_lock);
    if (before == HEALTH_DOWN)
        mk_log_info("upstream %.*s: %.*s is not checked any more, and gets requests again",
                    MK_STR_ARG(server->base.group), MK_STR_ARG(server->base.address));
}

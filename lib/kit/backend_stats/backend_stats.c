// SPDX-License-Identifier: Apache-2.0
/*
 * Holds the counters of backends as long as sections name them (<monkey/kit/backend_stats.h>).
 */
#include <monkey/kit/backend_stats.h>

#include <monkey/base/arena.h>

#include <errno.h>
#include <pthread.h>

/* The places of the infos. */
enum info {
    REQUESTS,
    RESPONSES,
    RETRIES,
    FAILURES,
    TIMEOUTS,
    OPENED,
    CONNECTIONS,
    SENT,
    RECEIVED,
    CONNECT_DURATION,
    HEAD_DURATION,
    DURATION,
};

/* The counters, with a further label. */
static const struct {
    enum info info;
    const char *name, *value;
} rows[MK_BACKEND_COUNTERS] = {
    [MK_BACKEND_REQUESTS] = {REQUESTS, NULL, NULL},
    [MK_BACKEND_RESPONSES] = {RESPONSES, "status", "1xx"},
    [MK_BACKEND_RESPONSES + 1] = {RESPONSES, "status", "2xx"},
    [MK_BACKEND_RESPONSES + 2] = {RESPONSES, "status", "3xx"},
    [MK_BACKEND_RESPONSES + 3] = {RESPONSES, "status", "4xx"},
    [MK_BACKEND_RESPONSES + 4] = {RESPONSES, "status", "5xx"},
    [MK_BACKEND_RETRIES + MK_UPSTREAM_NOT_REACHED] = {RETRIES, "reason", "not_reached"},
    [MK_BACKEND_RETRIES + MK_UPSTREAM_KEPT_ENDED] = {RETRIES, "reason", "stale_connection"},
    [MK_BACKEND_RETRIES + MK_UPSTREAM_SENT] = {RETRIES, "reason", "no_response"},
    [MK_BACKEND_RETRIES + MK_UPSTREAM_STATUS] = {RETRIES, "reason", "status"},
    [MK_BACKEND_FAILURES] = {FAILURES, NULL, NULL},
    [MK_BACKEND_TIMEOUTS] = {TIMEOUTS, NULL, NULL},
    [MK_BACKEND_OPENED] = {OPENED, NULL, NULL},
    [MK_BACKEND_BUSY] = {CONNECTIONS, "state", "busy"},
    [MK_BACKEND_IDLE] = {CONNECTIONS, "state", "idle"},
    [MK_BACKEND_SENT_BYTES] = {SENT, NULL, NULL},
    [MK_BACKEND_RECEIVED_BYTES] = {RECEIVED, NULL, NULL},
    [MK_BACKEND_CONNECT_DURATION] = {CONNECT_DURATION, NULL, NULL},
    [MK_BACKEND_HEAD_DURATION] = {HEAD_DURATION, NULL, NULL},
    [MK_BACKEND_DURATION] = {DURATION, NULL, NULL},
};

/* ── counters of a backend ── */

static struct mk_backend_stats *find_stats(struct mk_stats_registry *registry, struct mk_str backend,
                                           struct mk_str server)
{
    MK_LIST_EACH_ITEM(&registry->list, struct mk_backend_stats, node, stats) {
        if (mk_str_eq(stats->backend, backend) && mk_str_eq(stats->server, server))
            return stats;
    }
    return NULL;
}

static struct mk_backend_stats *make_stats(struct mk_stats_registry *registry, struct mk_str backend,
                                           struct mk_str server)
{
    struct mk_backend_stats *stats = mk_account_alloc(NULL, sizeof(*stats) + backend.len + server.len);
    if (!stats)
        return NULL;
    char *text = (char *)(stats + 1);
    *stats = (struct mk_backend_stats){.backend = {text, backend.len}, .server = {text + backend.len, server.len}};
    char *end = mempcpy(text, backend.p, backend.len);
    if (server.len)
        memcpy(end, server.p, server.len);
    mk_list_add(&registry->list, &stats->node);
    return stats;
}

static void hold_counters(const struct mk_counter_info *infos, struct mk_backend_stats *stats)
{
    for (unsigned i = 0; i < MK_BACKEND_COUNTERS; i++) {
        struct mk_counter_label labels[3] = {{"backend", stats->backend}};
        unsigned n = 1;
        if (stats->server.len)
            labels[n++] = (struct mk_counter_label){"server", stats->server};
        if (rows[i].name)
            labels[n++] = (struct mk_counter_label){rows[i].name, mk_str_c(rows[i].value)};
        const struct mk_counter *counter = mk_counter_hold(&infos[rows[i].info], labels, n);
        if (stats->counters[i] != counter) /* threads may be counting */
            stats->counters[i] = counter;
    }
}

/* Returns the counters of a backend, and holds them; NULL without memory. */
static struct mk_backend_stats *hold_stats(struct mk_stats_registry *registry, struct mk_str backend,
                                           struct mk_str server)
{
    pthread_mutex_lock(&registry->lock);
    struct mk_backend_stats *stats = find_stats(registry, backend, server);
    if (!stats)
        stats = make_stats(registry, backend, server);
    if (stats && stats->refs++ == 0)
        hold_counters(registry->infos, stats);
    pthread_mutex_unlock(&registry->lock);
    return stats;
}

static void release_stats(struct mk_stats_registry *registry, struct mk_backend_stats *stats)
{
    pthread_mutex_lock(&registry->lock);
    bool is_last = --stats->refs == 0;
    for (unsigned i = 0; is_last && i < MK_BACKEND_COUNTERS; i++)
        mk_counter_put(stats->counters[i]);
    pthread_mutex_unlock(&registry->lock);
}

/* ── the process ── */

void mk_stats_registry_init(struct mk_stats_registry *registry, const struct mk_counter_info *infos)
{
    *registry = (struct mk_stats_registry){.infos = infos};
    mk_list_init(&registry->list);
    pthread_mutex_init(&registry->lock, NULL);
}

void mk_stats_registry_release(struct mk_stats_registry *registry)
{
    while (!mk_list_empty(&registry->list)) {
        struct mk_backend_stats *stats = MK_LIST_FIRST(&registry->list, struct mk_backend_stats, node);
        mk_list_del(&stats->node);
        mk_account_free(NULL, stats, sizeof(*stats) + stats->backend.len + stats->server.len);
    }
    pthread_mutex_destroy(&registry->lock);
}

/* ── the backend of a section ── */

/* Returns what names the backend, without what its paths become; the text may have none. */
static struct mk_str get_name(const struct mk_target *to)
{
    size_t len = to->text.len, path_len = to->path.len < len ? to->path.len : 0;
    struct mk_str end = mk_str(to->text.p + len - path_len, path_len);
    return mk_str_trim(mk_str(to->text.p, mk_str_eq(end, to->path) ? len - path_len : len));
}

static int open_servers(struct mk_target_stats *b, struct mk_stats_registry *registry, struct mk_str backend,
                        const struct mk_upstreams *upstreams, const struct mk_upstream_group *group)
{
    while (upstreams->server_name(group, b->room).len)
        b->room++;
    b->servers = mk_account_alloc(NULL, b->room * sizeof(*b->servers));
    for (; b->servers && b->n < b->room; b->n++) {
        b->servers[b->n] = hold_stats(registry, backend, upstreams->server_name(group, b->n));
        if (!b->servers[b->n])
            return -ENOMEM;
    }
    return b->servers ? 0 : -ENOMEM;
}

int mk_target_stats_open(struct mk_target_stats *b, struct mk_stats_registry *registry, const struct mk_target *target,
                         const struct mk_upstreams *upstreams, const struct mk_upstream_group *group)
{
    struct mk_str name = get_name(target);
    *b = (struct mk_target_stats){.backend = hold_stats(registry, name, MK_STR(""))};
    if (!b->backend)
        return -ENOMEM;
    return group ? open_servers(b, registry, name, upstreams, group) : 0;
}

void mk_target_stats_close(struct mk_target_stats *b, struct mk_stats_registry *registry)
{
    if (b->backend)
        release_stats(registry, b->backend);
    for (unsigned i = 0; i < b->n; i++)
        release_stats(registry, b->servers[i]);
    mk_account_free(NULL, b->servers, b->servers ? b->room * sizeof(*b->servers) : 0);
    *b = (struct mk_target_stats){0};
}

const struct mk_backend_stats *mk_target_stats_find(const struct mk_target_stats *b, struct mk_str server)
{
    for (unsigned i = 0; i < b->n; i++)
        if (mk_str_eq(b->servers[i]->server, server))
            return b->servers[i];
    return b->backend;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Opens the counters of backends, and hides those of backends that are gone (<monkey/tally.h>).
 */
#include <monkey/tally.h>

#include <monkey/arena.h>

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
} rows[MK_TALLY_COUNTERS] = {
    [MK_TALLY_REQUESTS] = {REQUESTS, NULL, NULL},
    [MK_TALLY_RESPONSES] = {RESPONSES, "status", "1xx"},
    [MK_TALLY_RESPONSES + 1] = {RESPONSES, "status", "2xx"},
    [MK_TALLY_RESPONSES + 2] = {RESPONSES, "status", "3xx"},
    [MK_TALLY_RESPONSES + 3] = {RESPONSES, "status", "4xx"},
    [MK_TALLY_RESPONSES + 4] = {RESPONSES, "status", "5xx"},
    [MK_TALLY_RETRIES + MK_UPSTREAM_NOT_REACHED] = {RETRIES, "reason", "not_reached"},
    [MK_TALLY_RETRIES + MK_UPSTREAM_KEPT_ENDED] = {RETRIES, "reason", "kept_connection"},
    [MK_TALLY_RETRIES + MK_UPSTREAM_SENT] = {RETRIES, "reason", "no_response"},
    [MK_TALLY_RETRIES + MK_UPSTREAM_STATUS] = {RETRIES, "reason", "status"},
    [MK_TALLY_FAILURES] = {FAILURES, NULL, NULL},
    [MK_TALLY_TIMEOUTS] = {TIMEOUTS, NULL, NULL},
    [MK_TALLY_OPENED] = {OPENED, NULL, NULL},
    [MK_TALLY_BUSY] = {CONNECTIONS, "state", "busy"},
    [MK_TALLY_IDLE] = {CONNECTIONS, "state", "idle"},
    [MK_TALLY_SENT_BYTES] = {SENT, NULL, NULL},
    [MK_TALLY_RECEIVED_BYTES] = {RECEIVED, NULL, NULL},
    [MK_TALLY_CONNECT_DURATION] = {CONNECT_DURATION, NULL, NULL},
    [MK_TALLY_HEAD_DURATION] = {HEAD_DURATION, NULL, NULL},
    [MK_TALLY_DURATION] = {DURATION, NULL, NULL},
};

/* ── tallies ── */

static struct mk_tally *find_tally(struct mk_tallies *all, struct mk_str backend, struct mk_str server)
{
    struct mk_list *n, *save;
    MK_LIST_EACH(&all->list, n, save) {
        struct mk_tally *tally = MK_CONTAINER_OF(n, struct mk_tally, node);
        if (mk_str_eq(tally->backend, backend) && mk_str_eq(tally->server, server))
            return tally;
    }
    return NULL;
}

static struct mk_tally *make_tally(struct mk_tallies *all, struct mk_str backend, struct mk_str server)
{
    struct mk_tally *tally = mk_account_alloc(NULL, sizeof(*tally) + backend.len + server.len);
    if (!tally)
        return NULL;
    char *text = (char *)(tally + 1);
    *tally = (struct mk_tally){.backend = {text, backend.len}, .server = {text + backend.len, server.len}};
    char *end = mempcpy(text, backend.p, backend.len);
    if (server.len)
        memcpy(end, server.p, server.len);
    mk_list_add(&all->list, &tally->node);
    return tally;
}

static void open_counters(const struct mk_counter_info *infos, struct mk_tally *tally)
{
    for (unsigned i = 0; i < MK_TALLY_COUNTERS; i++) {
        struct mk_counter_label labels[3] = {{"backend", tally->backend}};
        unsigned n = 1;
        if (tally->server.len)
            labels[n++] = (struct mk_counter_label){"server", tally->server};
        if (rows[i].name)
            labels[n++] = (struct mk_counter_label){rows[i].name, mk_str_c(rows[i].value)};
        const struct mk_counter *counter = mk_counter_open(&infos[rows[i].info], labels, n);
        if (tally->counters[i] != counter) /* threads may be counting */
            tally->counters[i] = counter;
    }
}

/* Returns a tally, and holds it; NULL without memory. */
static struct mk_tally *hold_tally(struct mk_tallies *all, struct mk_str backend, struct mk_str server)
{
    pthread_mutex_lock(&all->lock);
    struct mk_tally *tally = find_tally(all, backend, server);
    if (!tally)
        tally = make_tally(all, backend, server);
    if (tally && tally->refs++ == 0)
        open_counters(all->infos, tally);
    pthread_mutex_unlock(&all->lock);
    return tally;
}

static void release_tally(struct mk_tallies *all, struct mk_tally *tally)
{
    pthread_mutex_lock(&all->lock);
    tally->refs--;
    pthread_mutex_unlock(&all->lock);
}

static bool is_used(struct mk_str labels, void *ctx)
{
    const struct mk_tallies *all = ctx;
    char storage[2][MK_COUNTER_LABEL_VALUE_BYTES];
    struct mk_str backend = mk_counter_label_get(labels, MK_STR("backend"), storage[0]);
    struct mk_str server = mk_counter_label_get(labels, MK_STR("server"), storage[1]);
    struct mk_list *n, *save;
    MK_LIST_EACH(&all->list, n, save) {
        const struct mk_tally *tally = MK_CONTAINER_OF(n, struct mk_tally, node);
        if (tally->refs && mk_str_eq(mk_counter_label_truncate(tally->backend), backend) &&
            mk_str_eq(mk_counter_label_truncate(tally->server), server))
            return true;
    }
    return false;
}

void mk_tallies_hide_unused(struct mk_tallies *all)
{
    pthread_mutex_lock(&all->lock);
    mk_counters_hide(all->infos->plugin, "backend", is_used, all);
    pthread_mutex_unlock(&all->lock);
}

/* ── the process and its generations ── */

void mk_tallies_init(struct mk_tallies *all, const struct mk_counter_info *infos)
{
    *all = (struct mk_tallies){.infos = infos};
    mk_list_init(&all->list);
    pthread_mutex_init(&all->lock, NULL);
}

void mk_tallies_release(struct mk_tallies *all)
{
    while (!mk_list_empty(&all->list)) {
        struct mk_tally *tally = MK_LIST_FIRST(&all->list, struct mk_tally, node);
        mk_list_del(&tally->node);
        mk_account_free(NULL, tally, sizeof(*tally) + tally->backend.len + tally->server.len);
    }
    pthread_mutex_destroy(&all->lock);
}

void mk_tallies_start_generation(struct mk_tallies *all)
{
    all->generations++;
}

/* With the last generation the process ends, and another one may continue them. */
void mk_tallies_stop_generation(struct mk_tallies *all)
{
    if (--all->generations > 0)
        mk_tallies_hide_unused(all);
}

/* ── the backend of a section ── */

/* Returns what names the backend, without what its paths become; the text may have none. */
static struct mk_str get_name(const struct mk_target *to)
{
    size_t len = to->text.len, path_len = to->path.len < len ? to->path.len : 0;
    struct mk_str end = mk_str(to->text.p + len - path_len, path_len);
    return mk_str_trim(mk_str(to->text.p, mk_str_eq(end, to->path) ? len - path_len : len));
}

static int open_servers(struct mk_backend_tallies *b, struct mk_tallies *all, struct mk_str backend,
                        const struct mk_upstreams *upstreams, const struct mk_upstream_group *group)
{
    while (upstreams->server_name(group, b->room).len)
        b->room++;
    b->servers = mk_account_alloc(NULL, b->room * sizeof(*b->servers));
    for (; b->servers && b->n < b->room; b->n++) {
        b->servers[b->n] = hold_tally(all, backend, upstreams->server_name(group, b->n));
        if (!b->servers[b->n])
            return -ENOMEM;
    }
    return b->servers ? 0 : -ENOMEM;
}

int mk_backend_tallies_open(struct mk_backend_tallies *b, struct mk_tallies *all, const struct mk_target *target,
                            const struct mk_upstreams *upstreams, const struct mk_upstream_group *group)
{
    struct mk_str name = get_name(target);
    *b = (struct mk_backend_tallies){.backend = hold_tally(all, name, MK_STR(""))};
    if (!b->backend)
        return -ENOMEM;
    return group ? open_servers(b, all, name, upstreams, group) : 0;
}

void mk_backend_tallies_close(struct mk_backend_tallies *b, struct mk_tallies *all)
{
    if (b->backend)
        release_tally(all, b->backend);
    for (unsigned i = 0; i < b->n; i++)
        release_tally(all, b->servers[i]);
    mk_account_free(NULL, b->servers, b->servers ? b->room * sizeof(*b->servers) : 0);
    *b = (struct mk_backend_tallies){0};
}

const struct mk_tally *mk_backend_tallies_find(const struct mk_backend_tallies *b, struct mk_str server)
{
    for (unsigned i = 0; i < b->n; i++)
        if (mk_str_eq(b->servers[i]->server, server))
            return b->servers[i];
    return b->backend;
}

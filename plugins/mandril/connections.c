// SPDX-License-Identifier: Apache-2.0
/*
 * Applies [CONNECTIONS] when a connection is accepted, or, where a trusted proxy names the client, to each request. A
 * connection has no state of plugins, so those that are counted are in a map by their numbers.
 */
#include "mandril.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>

/* ── the map ── */

enum { MAP_SHARDS = 64, MAP_CHAINS = 64 };

/* A section has counted a connection, or a request behind a proxy. */
struct counted_conn {
    struct counted_conn *next;
    uint64_t id;       /* of the connection */
    struct zone *zone; /* holds a reference */
    struct mk_client_ref ref;
};

struct conn_map {
    struct conn_shard {
        pthread_mutex_t lock;
        struct counted_conn *chains[MAP_CHAINS];
    } shards[MAP_SHARDS];
};

struct conn_map *conn_map_new(void)
{
    struct conn_map *map = mk_account_alloc(NULL, sizeof(*map));
    if (!map)
        return NULL;
    memset(map, 0, sizeof(*map));
    for (unsigned i = 0; i < MAP_SHARDS; i++)
        pthread_mutex_init(&map->shards[i].lock, NULL);
    return map;
}

static struct counted_conn *take_any(struct conn_shard *shard)
{
    for (unsigned i = 0; i < MAP_CHAINS; i++)
        if (shard->chains[i]) {
            struct counted_conn *c = shard->chains[i];
            shard->chains[i] = c->next;
            return c;
        }
    return NULL;
}

void conn_map_free(struct conn_map *map, struct zones *zones)
{
    struct counted_conn *c;
    for (unsigned i = 0; i < MAP_SHARDS; i++) {
        while ((c = take_any(&map->shards[i]))) {
            zones_put(zones, c->zone);
            mk_account_free(NULL, c, sizeof(*c));
        }
        pthread_mutex_destroy(&map->shards[i].lock);
    }
    mk_account_free(NULL, map, sizeof(*map));
}

static struct counted_conn **find_chain(struct conn_map *map, uint64_t id, struct conn_shard **ret_shard)
{
    *ret_shard = &map->shards[id % MAP_SHARDS];
    return &(*ret_shard)->chains[id / MAP_SHARDS % MAP_CHAINS];
}

static void add_conn(struct conn_map *map, struct counted_conn *c)
{
    struct conn_shard *shard;
    struct counted_conn **chain = find_chain(map, c->id, &shard);
    pthread_mutex_lock(&shard->lock);
    c->next = *chain;
    *chain = c;
    pthread_mutex_unlock(&shard->lock);
}

/* Removes the counts of a connection from the map and returns them; NULL if there are none. */
static struct counted_conn *take_conn(struct conn_map *map, uint64_t id)
{
    struct conn_shard *shard;
    struct counted_conn **at = find_chain(map, id, &shard), *taken = NULL;
    pthread_mutex_lock(&shard->lock);
    while (*at) {
        struct counted_conn *c = *at;
        if (c->id != id) {
            at = &c->next;
            continue;
        }
        *at = c->next;
        c->next = taken;
        taken = c;
    }
    pthread_mutex_unlock(&shard->lock);
    return taken;
}

/* ── counting ── */

static void uncount_client(struct zone *zone, struct mk_client_ref ref)
{
    struct zone_client *record = mk_client_table_lock_ref(zone->table, ref);
    if (!record)
        return; /* evicted */
    assert(record->connections > 0);
    record->connections--;
    zone_unlock_client(zone, record, 0);
}

static void free_counts(struct process_state *process, struct counted_conn *counts)
{
    while (counts) {
        struct counted_conn *c = counts;
        counts = c->next;
        uncount_client(c->zone, c->ref);
        zones_put(process->zones, c->zone);
        mk_account_free(NULL, c, sizeof(*c));
    }
}

static bool was_counted(const struct counted_conn *counts, const struct zone *zone)
{
    while (counts && counts->zone != zone)
        counts = counts->next;
    return counts != NULL;
}

/* ── deciding ── */

struct conn_subject {
    struct process_state *process;
    struct mk_address client;
    struct mk_loop *loop;
    struct mk_connection *conn;   /* that is accepted, or */
    struct mk_request *req;       /* a request; the other is NULL */
    bool counts;                  /* the client is to be counted */
    struct counted_conn *counted; /* by sections, so far */
};

static void log_decision(const struct connection_rule *rule, struct mk_str what, const struct conn_subject *s)
{
    struct zone_decision line = {
        .place = rule->base.place,
        .name = rule->base.name,
        .what = what,
        .client = s->client,
        .req = s->req,
        .conn = s->conn,
        .level = MK_LOG_INFO,
        .dry_run = rule->conf->dry_run,
    };
    zone_log(rule->base.zone, &line, mk_loop_now_ms(s->loop));
}

/* Counts one more of the client. Returns 0, -EACCES (it has as many as it may) or -ENOMEM. */
static int count_client(const struct connection_rule *rule, struct conn_subject *s)
{
    struct zone *zone = rule->base.zone;
    struct counted_conn *c = mk_account_alloc(NULL, sizeof(*c));
    if (!c)
        return -ENOMEM;
    struct zone_client *record = mk_client_table_lock(zone->table, &s->client, mk_loop_now_us(s->loop));
    bool fine = record->connections < rule->conf->connections_max;
    record->connections += fine;
    *c = (struct counted_conn){.next = s->counted, .ref = mk_client_table_ref(zone->table, record)};
    zone_unlock_client(zone, record, 0);
    zone_check_evictions(zone, NULL, rule->base.place, mk_loop_now_ms(s->loop));
    if (!fine) {
        mk_account_free(NULL, c, sizeof(*c));
        return -EACCES;
    }
    c->zone = zones_hold(s->process->zones, zone);
    s->counted = c;
    return 0;
}

/* Asks a section that is for the client, and logs if it drops. Returns 0, -EACCES or -ENOMEM. */
static int ask_section(const struct connection_rule *rule, struct conn_subject *s)
{
    int err = -EACCES;
    struct mk_str what = MK_STR("drop");
    if (rule->conf->action == CONNECTION_ALLOW) {
        if (!rule->conf->connections_max || !s->counts || was_counted(s->counted, rule->base.zone))
            return 0;
        err = count_client(rule, s);
        what = MK_STR("drop (MaxConnections)");
    }
    if (err == -EACCES)
        log_decision(rule, what, s);
    return err;
}

/*
 * Finds what the sections decide. Returns 0 (it goes on; `s->counted` are the counts to end), -EACCES (it is dropped)
 * or -ENOMEM. A section in a dry run counts and logs, and the next one is asked.
 */
static int decide(const struct generation_state *g, struct files_refs *files, struct conn_subject *s)
{
    int err = 0;
    bool decided = false;
    for (uint32_t i = 0; i < g->n_connections && !decided; i++) {
        const struct connection_rule *rule = &g->connections[i];
        if (!filter_contains(&rule->base.clients, files, &s->client))
            continue;
        err = ask_section(rule, s);
        if (rule->conf->dry_run && err == -EACCES)
            err = 0;
        decided = !rule->conf->dry_run || err < 0;
    }
    if (err < 0) {
        free_counts(s->process, s->counted);
        s->counted = NULL;
    }
    return err;
}

/* ── hooks ── */

int connections_accept(struct mk_connection *conn)
{
    struct mk_worker *worker = mk_connection_worker(conn);
    const struct mk_generation *generation = mk_worker_generation(worker);
    const struct generation_state *g = mk_generation_state(generation, &mk_plugin_mandril);
    const struct worker_state *w = mk_worker_state(worker, &mk_plugin_mandril);
    if (!g->n_connections)
        return 0;
    struct conn_subject s = {g->process, mk_connection_peer(conn), mk_worker_loop(worker), conn, NULL, true, NULL};
    if (mk_generation_trusts(generation, &s.client))
        return 0; /* its clients are checked with their requests */
    int err = decide(g, w->files, &s);
    while (s.counted) {
        struct counted_conn *c = s.counted;
        s.counted = c->next;
        c->id = mk_connection_id(conn);
        add_conn(g->process->conns, c);
    }
    return err;
}

void connections_close(struct mk_connection *conn)
{
    const struct mk_generation *generation = mk_worker_generation(mk_connection_worker(conn));
    struct process_state *process = mk_generation_plugin_state(generation, &mk_plugin_mandril);
    free_counts(process, take_conn(process->conns, mk_connection_id(conn)));
}

int connections_check_request(struct generation_state *g, struct files_refs *files,
                              const struct conditions_subject *subject)
{
    const struct mk_generation *generation = mk_worker_generation(mk_request_worker(subject->req));
    struct mk_address peer = mk_request_peer(subject->req);
    bool proxied = !mk_address_equal(&peer, &subject->client);
    if (!proxied && mk_generation_trusts(generation, &peer))
        return MK_DECLINED; /* a proxy that names no client */
    struct conn_subject s = {g->process, subject->client, mk_request_loop(subject->req), NULL, subject->req, proxied,
                             NULL};
    int err = decide(g, files, &s);
    if (err == -EACCES) {
        mk_response_abort(subject->req);
        return 0;
    }
    if (err < 0 || !s.counted)
        return err < 0 ? err : MK_DECLINED;
    struct exchange *x = mandril_get_exchange(subject->req);
    if (!x) {
        free_counts(g->process, s.counted);
        return -ENOMEM;
    }
    x->conns = s.counted;
    return MK_DECLINED;
}

void connections_end(struct exchange *x, struct process_state *process)
{
    free_counts(process, x->conns);
    x->conns = NULL;
}

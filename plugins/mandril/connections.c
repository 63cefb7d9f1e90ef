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

struct counted_conn {
    struct counted_conn *next;
    uint64_t id;
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

/* Removes a connection from the map and returns it; NULL if it is not there. */
static struct counted_conn *take_conn(struct conn_map *map, uint64_t id)
{
    struct conn_shard *shard;
    struct counted_conn **at = find_chain(map, id, &shard);
    pthread_mutex_lock(&shard->lock);
    while (*at && (*at)->id != id)
        at = &(*at)->next;
    struct counted_conn *c = *at;
    if (c)
        *at = c->next;
    pthread_mutex_unlock(&shard->lock);
    return c;
}

/* ── counting ── */

/* Counts one more of a client. Returns false if it has as many as it may. */
static bool count_client(const struct connection_rule *rule, const struct mk_address *client, struct mk_loop *loop,
                         struct mk_client_ref *ret)
{
    struct zone *zone = rule->base.zone;
    struct zone_client *record = mk_client_table_lock(zone->table, client, mk_loop_now_us(loop));
    bool fine = record->connections < rule->conf->connections_max;
    record->connections += fine;
    *ret = mk_client_table_ref(zone->table, record);
    mk_client_table_unlock(zone->table, record, MK_CLIENT_IN_USE);
    zone_check_evictions(zone, rule->base.place, mk_loop_now_ms(loop));
    return fine;
}

static void uncount_client(struct zone *zone, struct mk_client_ref ref)
{
    struct zone_client *record = mk_client_table_lock_ref(zone->table, ref);
    if (!record)
        return; /* evicted */
    assert(record->connections > 0);
    record->connections--;
    mk_client_table_unlock(zone->table, record, record->connections ? MK_CLIENT_IN_USE : 0);
}

/* ── deciding ── */

static void log_decision(const struct connection_rule *rule, struct mk_str what, const struct mk_address *client,
                         struct mk_request *req, const struct mk_loop *loop)
{
    struct zone_decision line = {
        .place = rule->base.place,
        .name = rule->base.name,
        .what = what,
        .client = *client,
        .req = req,
        .level = MK_LOG_INFO,
        .dry_run = rule->conf->dry_run,
    };
    zone_log(rule->base.zone, &line, mk_loop_now_ms(loop));
}

struct conn_subject {
    struct mk_address client;
    struct mk_loop *loop;
    struct mk_request *req; /* NULL: a connection is accepted */
    bool counts;            /* the client is to be counted */
};

/*
 * Finds what the sections decide. Returns 0 (it goes on; `*ret_rule` is the section that has counted the client, or
 * NULL) or -EACCES (it is dropped).
 */
static int decide(const struct generation_state *g, struct files_refs *files, const struct conn_subject *s,
                  const struct connection_rule **ret_rule, struct mk_client_ref *ret_ref)
{
    *ret_rule = NULL;
    for (uint32_t i = 0; i < g->n_connections; i++) {
        const struct connection_rule *rule = &g->connections[i];
        struct mk_str what = MK_STR("drop");
        if (!filter_contains(&rule->base.clients, files, &s->client))
            continue;
        if (rule->conf->action == CONNECTION_ALLOW) {
            if (!rule->conf->connections_max || !s->counts)
                return 0;
            if (count_client(rule, &s->client, s->loop, ret_ref)) {
                *ret_rule = rule;
                return 0;
            }
            what = MK_STR("drop (MaxConnections)");
        }
        log_decision(rule, what, &s->client, s->req, s->loop);
        if (!rule->conf->dry_run)
            return -EACCES;
    }
    return 0;
}

/* ── hooks ── */

/* Remembers that a connection is counted. Returns 0 or -ENOMEM. */
static int keep_count(struct process_state *process, uint64_t id, struct zone *zone, struct mk_client_ref ref)
{
    struct counted_conn *c = mk_account_alloc(NULL, sizeof(*c));
    if (!c) {
        uncount_client(zone, ref);
        return -ENOMEM;
    }
    *c = (struct counted_conn){.id = id, .zone = zones_hold(process->zones, zone), .ref = ref};
    add_conn(process->conns, c);
    return 0;
}

int connections_accept(struct mk_connection *conn)
{
    struct mk_worker *worker = mk_connection_worker(conn);
    const struct mk_generation *generation = mk_worker_generation(worker);
    const struct generation_state *g = mk_generation_state(generation, &mk_plugin_mandril);
    const struct worker_state *w = mk_worker_state(worker, &mk_plugin_mandril);
    const struct connection_rule *rule;
    struct mk_client_ref ref;
    if (!g->n_connections)
        return 0;
    struct conn_subject s = {mk_connection_peer(conn), mk_worker_loop(worker), NULL, true};
    if (mk_generation_trusts(generation, &s.client))
        return 0; /* its clients are checked with their requests */
    int err = decide(g, w->files, &s, &rule, &ref);
    return err < 0 || !rule ? err : keep_count(g->process, mk_connection_id(conn), rule->base.zone, ref);
}

void connections_close(struct mk_connection *conn)
{
    const struct mk_generation *generation = mk_worker_generation(mk_connection_worker(conn));
    struct process_state *process = mk_generation_plugin_state(generation, &mk_plugin_mandril);
    struct counted_conn *c = take_conn(process->conns, mk_connection_id(conn));
    if (!c)
        return;
    uncount_client(c->zone, c->ref);
    zones_put(process->zones, c->zone);
    mk_account_free(NULL, c, sizeof(*c));
}

int connections_check_request(struct generation_state *g, struct files_refs *files,
                              const struct conditions_subject *subject)
{
    const struct mk_generation *generation = mk_worker_generation(mk_request_worker(subject->req));
    const struct connection_rule *rule;
    struct mk_client_ref ref;
    struct mk_address peer = mk_request_peer(subject->req);
    bool proxied = !mk_address_equal(&peer, &subject->client);
    if (!proxied && mk_generation_trusts(generation, &peer))
        return MK_DECLINED; /* a proxy that names no client */
    struct conn_subject s = {subject->client, mk_request_loop(subject->req), subject->req, proxied};
    if (decide(g, files, &s, &rule, &ref) < 0) {
        mk_response_abort(subject->req);
        return 0;
    }
    if (!rule)
        return MK_DECLINED;
    struct exchange *x = mandril_get_exchange(subject->req);
    if (!x) {
        uncount_client(rule->base.zone, ref);
        return -ENOMEM;
    }
    x->conn = ref;
    x->conn_zone = rule->base.zone;
    return MK_DECLINED;
}

void connections_end(struct exchange *x)
{
    if (x->conn_zone)
        uncount_client(x->conn_zone, x->conn);
    x->conn_zone = NULL;
}

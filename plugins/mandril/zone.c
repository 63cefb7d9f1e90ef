// SPDX-License-Identifier: Apache-2.0
/*
 * Zones. Sections take them when a configuration is loaded, under a lock; requests use only atomic counters
 * and the table of clients.
 */
#include "mandril.h"

#include <monkey/base/arena.h>
#include <monkey/base/hash.h>
#include <monkey/log.h>

#include <assert.h>
#include <pthread.h>
#include <stdio.h>

/*
 * Token buckets. A bucket keeps what is missing, not what is there: after a reload with another rate or
 * burst the client has used as much as before.
 */
enum { DAY_S = 86400, BYTES_BURST_MIN = 2048, BURSTS_PER_S = 10 };

struct bucket_rate bucket_request_rate(uint32_t n, uint32_t period_s, uint32_t burst)
{
    assert(n > 0 && n <= BUCKET_REQUESTS_MAX && burst > 0 && burst <= BUCKET_REQUESTS_MAX && DAY_S % period_s == 0);
    return (struct bucket_rate){BUCKET_REQUEST, (uint64_t)n * (DAY_S / period_s), burst * BUCKET_REQUEST};
}

struct bucket_rate bucket_byte_rate(uint64_t bytes_per_s)
{
    assert(bytes_per_s > 0 && bytes_per_s <= BUCKET_BYTES_MAX);
    uint64_t burst = bytes_per_s / BURSTS_PER_S;
    return (struct bucket_rate){BUCKET_BYTE, bytes_per_s,
                                (burst < BYTES_BURST_MIN ? BYTES_BURST_MIN : burst) * BUCKET_BYTE};
}

/* Fills the bucket up to `now_us`, which may be earlier than the last time if threads read the clock before a lock. */
static void fill_bucket(struct bucket *b, const struct bucket_rate *rate, uint64_t now_us)
{
    if (now_us <= b->at_us)
        return;
    uint64_t elapsed = now_us - b->at_us;
    b->used = elapsed > b->used / rate->per_us ? 0 : b->used - elapsed * rate->per_us;
    b->at_us = now_us;
}

uint64_t bucket_count(struct bucket *b, const struct bucket_rate *rate, uint64_t now_us)
{
    fill_bucket(b, rate, now_us);
    return b->used >= rate->capacity ? 0 : (rate->capacity - b->used) / rate->token;
}

bool bucket_take(struct bucket *b, const struct bucket_rate *rate, uint64_t tokens, uint64_t now_us)
{
    if (bucket_count(b, rate, now_us) < tokens)
        return false;
    b->used += tokens * rate->token;
    return true;
}

void bucket_put(struct bucket *b, const struct bucket_rate *rate, uint64_t tokens)
{
    uint64_t units = tokens * rate->token;
    b->used = units > b->used ? 0 : b->used - units;
}

uint64_t bucket_wait_us(const struct bucket *b, const struct bucket_rate *rate, uint64_t tokens)
{
    uint64_t units = tokens * rate->token;
    assert(units <= rate->capacity);
    uint64_t allowed = rate->capacity - units; /* may be missing */
    return b->used <= allowed ? 0 : (b->used - allowed + rate->per_us - 1) / rate->per_us;
}

uint64_t bucket_full_at(const struct bucket *b, const struct bucket_rate *rate)
{
    return b->at_us + (rate->per_us ? (b->used + rate->per_us - 1) / rate->per_us : 0);
}

enum { LINES_MAX = 10, LINES_MS = 10000, EVICTIONS_MS = 1000 };

/* Bytes of a line, which mk_request_log() would cut, and of its parts. */
enum {
    LINE_BYTES = 559,
    PLACE_BYTES_MAX = 160,
    NAME_BYTES_MAX = 64,
    METHOD_BYTES_MAX = 32,
    TARGET_BYTES_MAX = 300,
    ADDRESS_BYTES = 128,
    TAIL_BYTES = 100
};

struct zones {
    pthread_mutex_t lock;
    struct mk_hash_table table;
};

/* ── the zones of the process ── */

struct zones *zones_new(void)
{
    struct zones *zones = mk_account_alloc(NULL, sizeof(*zones));
    if (!zones)
        return NULL;
    *zones = (struct zones){.table = {0}};
    pthread_mutex_init(&zones->lock, NULL);
    return zones;
}

void zones_free(struct zones *zones)
{
    assert(!zones->table.n);
    mk_hash_release(&zones->table, NULL);
    pthread_mutex_destroy(&zones->lock);
    mk_account_free(NULL, zones, sizeof(*zones));
}

/* Keys are of the configuration. */
static uint64_t hash_key(struct mk_str key)
{
    uint64_t hash = mk_hash_add(MK_HASH_EMPTY, key.p, key.len);
    return hash ^ hash >> 32;
}

static struct zone *find_zone(struct zones *zones, struct mk_str key, uint64_t hash, uint32_t clients)
{
    struct mk_hash_node *n;
    MK_HASH_EACH(&zones->table, hash, n) {
        struct zone *zone = MK_CONTAINER_OF(n, struct zone, node);
        if (zone->clients_max == clients && mk_str_eq(zone->key, key))
            return zone;
    }
    return NULL;
}

static void free_zone(struct zone *zone)
{
    mk_client_table_free(zone->table);
    mk_account_free(NULL, zone, sizeof(*zone) + zone->key.len);
}

static struct zone *make_zone(struct mk_str key, uint32_t clients)
{
    struct zone *zone = mk_account_zalloc(NULL, sizeof(*zone) + key.len);
    if (!zone)
        return NULL;
    memcpy(zone->text, key.p, key.len);
    zone->key = mk_str(zone->text, key.len);
    zone->clients_max = clients;
    if (clients)
        zone->table = mk_client_table_new(clients, sizeof(struct zone_client), 0, 0);
    if (zone->table || !clients)
        return zone;
    free_zone(zone);
    return NULL;
}

struct zone *zones_hold(struct zone *zone)
{
    atomic_fetch_add_explicit(&zone->refs, 1, memory_order_relaxed);
    return zone;
}

struct zone *zones_get(struct zones *zones, struct mk_str key, uint32_t clients)
{
    pthread_mutex_lock(&zones->lock);
    uint64_t hash = hash_key(key);
    struct zone *zone = find_zone(zones, key, hash, clients);
    if (!zone && (zone = make_zone(key, clients)) && mk_hash_insert(&zones->table, NULL, &zone->node, hash) < 0) {
        free_zone(zone);
        zone = NULL;
    }
    if (zone)
        zones_hold(zone);
    pthread_mutex_unlock(&zones->lock);
    return zone;
}

/* Drops a reference that is not the last one, without a lock: each request behind a proxy may do it. */
static bool drop_shared(struct zone *zone)
{
    unsigned refs = atomic_load_explicit(&zone->refs, memory_order_relaxed);
    while (refs > 1)
        if (atomic_compare_exchange_weak_explicit(&zone->refs, &refs, refs - 1, memory_order_release,
                                                  memory_order_relaxed))
            return true;
    return false;
}

void zones_put(struct zones *zones, struct zone *zone)
{
    if (!zone || drop_shared(zone))
        return;
    pthread_mutex_lock(&zones->lock);
    bool last = atomic_fetch_sub_explicit(&zone->refs, 1, memory_order_acq_rel) == 1;
    if (last)
        mk_hash_remove(&zones->table, &zone->node);
    pthread_mutex_unlock(&zones->lock);
    if (last)
        free_zone(zone);
}

void zone_unlock_client(struct zone *zone, struct zone_client *client, uint64_t idle_at)
{
    if (client->idle_at < idle_at)
        client->idle_at = idle_at;
    bool in_use = client->requests || client->connections;
    mk_client_table_unlock(zone->table, client, in_use ? MK_CLIENT_IN_USE : client->idle_at);
}

/* ── the log ── */

/* Returns whether one more line may be written now. */
static bool may_log(struct zone *zone, uint64_t now_ms)
{
    uint64_t turn = now_ms / LINES_MS + 1, last = atomic_load(&zone->log_turn);
    if (last != turn && atomic_compare_exchange_strong(&zone->log_turn, &last, turn))
        atomic_store(&zone->lines, 0);
    if (atomic_fetch_add(&zone->lines, 1) < LINES_MAX)
        return true;
    atomic_fetch_add(&zone->left_out, 1);
    return false;
}

static struct mk_str truncate_start(struct mk_str s, size_t max)
{
    return s.len > max ? mk_str(s.p + s.len - max, max) : s;
}

/* Adds the request; its target gets what room is left before `tail_bytes` bytes. */
static void add_request(struct mk_buf *line, struct mk_request *req, size_t tail_bytes)
{
    mk_buf_addf(line, ": %.*s ", MK_STR_ARG(mk_str_truncate(mk_request_method_name(req), METHOD_BYTES_MAX)));
    size_t used = line->len + tail_bytes, room = used < LINE_BYTES ? LINE_BYTES - used : 0;
    mk_buf_adds(line, mk_str_truncate(mk_request_target(req), room < TARGET_BYTES_MAX ? room : TARGET_BYTES_MAX));
}

static void write_line(const struct zone_decision *d, const char *message)
{
    if (d->req)
        return mk_request_log_all(d->req, d->level, "%s", message);
    if (!d->conn)
        return mk_log(d->level, "%s", message);
    struct mk_str listener = mk_connection_listener(d->conn);
    struct mk_address address = mk_connection_peer(d->conn);
    MK_BUF_ON_STACK(peer, ADDRESS_BYTES);
    mk_address_print(&address, &peer);
    mk_log(d->level, "%s, peer: %s, listener: %.*s", message, mk_buf_cstr(&peer), MK_STR_ARG(listener));
}

void zone_log(struct zone *zone, const struct zone_decision *d, uint64_t now_ms)
{
    uint64_t count = atomic_fetch_add_explicit(&zone->decisions, 1, memory_order_relaxed) + 1;
    char tail[TAIL_BYTES];
    if (!mk_log_wants(d->level) || !may_log(zone, now_ms))
        return;
    uint64_t left_out = atomic_exchange(&zone->left_out, 0);
    int n = snprintf(tail, sizeof(tail), "; %llu so far", (unsigned long long)count);
    if (left_out)
        n += snprintf(tail + n, sizeof(tail) - (size_t)n, ", %llu lines left out", (unsigned long long)left_out);
    MK_BUF_ON_STACK(line, LINE_BYTES + 1);
    mk_buf_addf(&line, "access: %.*s (%.*s): %s%.*s ", MK_STR_ARG(truncate_start(d->place, PLACE_BYTES_MAX)),
                MK_STR_ARG(mk_str_truncate(d->name, NAME_BYTES_MAX)), d->dry_run ? "dry run, would " : "",
                MK_STR_ARG(d->what));
    mk_address_print(&d->client, &line);
    if (d->req)
        add_request(&line, d->req, (size_t)n);
    mk_buf_adds(&line, mk_str_c(tail));
    write_line(d, mk_buf_cstr(&line));
}

void zone_check_evictions(struct zone *zone, const struct mk_host *host, struct mk_str place, uint64_t now_ms)
{
    uint64_t last = atomic_load(&zone->evicted_ms);
    if (now_ms < last + EVICTIONS_MS || !atomic_compare_exchange_strong(&zone->evicted_ms, &last, now_ms))
        return;
    uint64_t evicted = mk_client_table_counts(zone->table).evicted;
    uint64_t before = atomic_exchange(&zone->evicted, evicted);
    if (evicted != before)
        mk_host_log(host, MK_LOG_WARN,
                    "access: %.*s: %llu clients were forgotten, because there are more than MaxClients %u",
                    MK_STR_ARG(place), (unsigned long long)(evicted - before), zone->clients_max);
}

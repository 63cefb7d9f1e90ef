// SPDX-License-Identifier: Apache-2.0
/*
 * The table of <monkey/kit/client_table.h>. A shard has a lock, hash chains and a list of its entries from the least to
 * the most recently used one. All of them are indexes, and live in one mapping whose pages the kernel provides when
 * they are first used.
 */
#include <monkey/kit/client_table.h>

#include <monkey/base/siphash.h>

#include <assert.h>
#include <pthread.h>
#include <sys/mman.h>

enum { SHARDS_MAX = 64, SHARD_CLIENTS_MIN = 128, EVICT_STEPS = 8, V4_BITS = 32, V6_BITS = 64, NONE = UINT32_MAX };

struct client_key {
    uint64_t words[2]; /* the network */
    uint64_t family;
};

struct client_entry {
    struct client_key key;
    uint64_t idle_at;
    uint32_t chain; /* the next entry of the hash chain */
    uint32_t older, newer;
    uint32_t life; /* changes when the entry gets another client; from 1 */
    uint64_t record[];
};

struct client_shard {
    _Alignas(64) pthread_mutex_t lock;
    uint32_t oldest, newest;
    uint32_t used;
    uint64_t evicted;
};

struct mk_client_table {
    struct client_shard shards[SHARDS_MAX];
    uint64_t secret[2];
    size_t map_bytes;
    uint32_t shard_mask, shard_clients, chain_mask; /* number of shards and of chains of one, minus 1 */
    uint32_t entry_bytes;
    uint8_t v4_bits, v6_bits;
    uint32_t *chains;
    char *entries;
};

/* ── keys ── */

static uint64_t hash_key(const struct mk_client_table *t, const struct client_key *key)
{
    return mk_siphash(t->secret, key, sizeof(*key));
}

static struct client_key make_key(const struct mk_client_table *t, const struct mk_address *client)
{
    struct client_key key = {.family = client->family};
    unsigned bits = client->family == AF_INET ? t->v4_bits : client->family == AF_INET6 ? t->v6_bits : 0;
    uint8_t bytes[sizeof(client->bytes)] = {0};
    memcpy(bytes, client->bytes, bits / 8);
    if (bits % 8)
        bytes[bits / 8] = client->bytes[bits / 8] & (uint8_t)(0xff00 >> bits % 8);
    memcpy(key.words, bytes, sizeof(key.words));
    return key;
}

static bool equal_keys(const struct client_key *a, const struct client_key *b)
{
    return a->words[0] == b->words[0] && a->words[1] == b->words[1] && a->family == b->family;
}

/* ── entries: a number of the table; those of a shard follow each other ── */

static struct client_entry *get_entry(const struct mk_client_table *t, uint32_t n)
{
    return (struct client_entry *)(void *)(t->entries + (size_t)n * t->entry_bytes);
}

static uint32_t get_number(const struct mk_client_table *t, const struct client_entry *e)
{
    return (uint32_t)((size_t)((const char *)e - t->entries) / t->entry_bytes);
}

static struct client_entry *get_record_entry(const void *record)
{
    return MK_CONTAINER_OF((uintptr_t)record, struct client_entry, record);
}

/* Returns the head of the hash chain. An empty one is 0: numbers are stored plus one. */
static uint32_t *get_chain(const struct mk_client_table *t, uint32_t shard, uint64_t hash)
{
    return &t->chains[(size_t)shard * (t->chain_mask + 1) + ((hash >> 32) & t->chain_mask)];
}

static void unlink_entry(struct mk_client_table *t, struct client_shard *s, struct client_entry *e)
{
    if (e->older == NONE)
        s->oldest = e->newer;
    else
        get_entry(t, e->older)->newer = e->newer;
    if (e->newer == NONE)
        s->newest = e->older;
    else
        get_entry(t, e->newer)->older = e->older;
}

static void append_entry(struct mk_client_table *t, struct client_shard *s, struct client_entry *e)
{
    uint32_t n = get_number(t, e);
    e->older = s->newest;
    e->newer = NONE;
    if (s->newest == NONE)
        s->oldest = n;
    else
        get_entry(t, s->newest)->newer = n;
    s->newest = n;
}

static void unchain_entry(struct mk_client_table *t, uint32_t shard, struct client_entry *e)
{
    uint32_t *at = get_chain(t, shard, hash_key(t, &e->key)), n = get_number(t, e) + 1;
    while (*at != n)
        at = &get_entry(t, *at - 1)->chain;
    *at = e->chain;
}

/* Removes an old entry of a full shard and returns it: the oldest one that is not in use, if there is one nearby. */
static struct client_entry *evict_entry(struct mk_client_table *t, uint32_t shard, uint64_t now)
{
    struct client_shard *s = &t->shards[shard];
    struct client_entry *e = get_entry(t, s->oldest);
    for (unsigned i = 0; i < EVICT_STEPS && e->idle_at == MK_CLIENT_IN_USE && e->newer != NONE; i++)
        e = get_entry(t, e->newer);
    if (e->idle_at == MK_CLIENT_IN_USE)
        e = get_entry(t, s->oldest);
    s->evicted += now < e->idle_at;
    unlink_entry(t, s, e);
    unchain_entry(t, shard, e);
    return e;
}

static struct client_entry *add_entry(struct mk_client_table *t, uint32_t shard, const struct client_key *key,
                                      uint32_t *chain, uint64_t now)
{
    struct client_shard *s = &t->shards[shard];
    struct client_entry *e;
    if (s->used < t->shard_clients)
        e = get_entry(t, shard * t->shard_clients + s->used++);
    else
        e = evict_entry(t, shard, now);
    e->key = *key;
    e->life++;
    e->idle_at = now;
    e->chain = *chain;
    *chain = get_number(t, e) + 1;
    append_entry(t, s, e);
    return e;
}

/* Returns the locked entry of a client; NULL if it has none and `add` is false. */
static struct client_entry *lock_entry(struct mk_client_table *t, const struct mk_address *client, uint64_t now,
                                       bool add)
{
    struct client_key key = make_key(t, client);
    uint64_t hash = hash_key(t, &key);
    uint32_t shard = (uint32_t)hash & t->shard_mask, *chain = get_chain(t, shard, hash);
    struct client_shard *s = &t->shards[shard];
    struct client_entry *e = NULL;
    pthread_mutex_lock(&s->lock);
    for (uint32_t n = *chain; n; n = e->chain) {
        e = get_entry(t, n - 1);
        if (equal_keys(&e->key, &key))
            break;
    }
    bool found = *chain && equal_keys(&e->key, &key);
    if (!found && !add) {
        pthread_mutex_unlock(&s->lock);
        return NULL;
    }
    if (!found) {
        e = add_entry(t, shard, &key, chain, now);
    } else if (add && e->newer != NONE) {
        unlink_entry(t, s, e);
        append_entry(t, s, e);
    }
    if (now >= e->idle_at)
        memset(e->record, 0, t->entry_bytes - sizeof(*e));
    return e;
}

/* ── the interface ── */

static uint32_t round_up_to_power(uint32_t n)
{
    return n <= 1 ? 1 : (uint32_t)1 << (32 - __builtin_clz(n - 1));
}

static void init_shards(struct mk_client_table *t)
{
    for (uint32_t i = 0; i <= t->shard_mask; i++) {
        pthread_mutex_init(&t->shards[i].lock, NULL);
        t->shards[i].oldest = t->shards[i].newest = NONE;
    }
}

struct mk_client_table *mk_client_table_new(uint32_t clients, uint32_t record_bytes, unsigned v4_bits, unsigned v6_bits)
{
    assert(clients > 0 && clients <= 1U << 26 && record_bytes <= 1U << 16 && v4_bits <= V4_BITS && v6_bits <= 128);
    uint32_t shards = round_up_to_power(clients / SHARD_CLIENTS_MIN + 1) / 2;
    shards = shards < 1 ? 1 : shards > SHARDS_MAX ? SHARDS_MAX : shards;
    uint32_t each = (clients + shards - 1) / shards, chains = round_up_to_power(each);
    uint32_t entry_bytes = (uint32_t)sizeof(struct client_entry) + (record_bytes + 7) / 8 * 8;
    size_t chain_bytes = ((size_t)shards * chains * sizeof(uint32_t) + 63) / 64 * 64;
    size_t bytes = sizeof(struct mk_client_table) + chain_bytes + (size_t)shards * each * entry_bytes;
    struct mk_client_table *t = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (t == MAP_FAILED)
        return NULL;
    if (mk_siphash_key(t->secret) < 0) {
        munmap(t, bytes);
        return NULL;
    }
    t->map_bytes = bytes;
    t->shard_mask = shards - 1;
    t->shard_clients = each;
    t->chain_mask = chains - 1;
    t->entry_bytes = entry_bytes;
    t->v4_bits = (uint8_t)(v4_bits ? v4_bits : V4_BITS);
    t->v6_bits = (uint8_t)(v6_bits ? v6_bits : V6_BITS);
    t->chains = (uint32_t *)(t + 1);
    t->entries = (char *)(t + 1) + chain_bytes;
    init_shards(t);
    return t;
}

void mk_client_table_free(struct mk_client_table *t)
{
    if (!t)
        return;
    for (uint32_t i = 0; i <= t->shard_mask; i++)
        pthread_mutex_destroy(&t->shards[i].lock);
    munmap(t, t->map_bytes);
}

void *mk_client_table_lock(struct mk_client_table *t, const struct mk_address *client, uint64_t now)
{
    return lock_entry(t, client, now, true)->record;
}

void *mk_client_table_find(struct mk_client_table *t, const struct mk_address *client, uint64_t now)
{
    struct client_entry *e = lock_entry(t, client, now, false);
    return e ? e->record : NULL;
}

void *mk_client_table_lock_ref(struct mk_client_table *t, struct mk_client_ref ref)
{
    if (!ref.entry)
        return NULL;
    struct client_shard *s = &t->shards[(ref.entry - 1) / t->shard_clients];
    struct client_entry *e = get_entry(t, ref.entry - 1);
    pthread_mutex_lock(&s->lock);
    if (e->life == ref.life)
        return e->record;
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

struct mk_client_ref mk_client_table_ref(const struct mk_client_table *t, const void *record)
{
    const struct client_entry *e = get_record_entry(record);
    return (struct mk_client_ref){get_number(t, e) + 1, e->life};
}

void mk_client_table_unlock(struct mk_client_table *t, void *record, uint64_t idle_at)
{
    struct client_entry *e = get_record_entry(record);
    e->idle_at = idle_at;
    pthread_mutex_unlock(&t->shards[get_number(t, e) / t->shard_clients].lock);
}

struct mk_client_counts mk_client_table_counts(struct mk_client_table *t)
{
    struct mk_client_counts sum = {0};
    for (uint32_t i = 0; i <= t->shard_mask; i++) {
        pthread_mutex_lock(&t->shards[i].lock);
        sum.entries += t->shards[i].used;
        sum.evicted += t->shards[i].evicted;
        pthread_mutex_unlock(&t->shards[i].lock);
    }
    return sum;
}

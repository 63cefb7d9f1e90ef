// SPDX-License-Identifier: Apache-2.0
/* The functions of <monkey/kit/store.h>: lookups, and changes under the lock of a shard. */
#include "store.h"

#include <monkey/base/siphash.h>

#include <assert.h>
#include <errno.h>
#include <string.h>

enum {
    USES_MAX = 3,
    BYTES_PER_PRINT = 1024, /* of the budget */
    TABLES_PART = 32,       /* this fraction of the budget is for tables at first */
};

static_assert(sizeof(struct mk_item) == 56, "with the head of its block an item begins with 64 bytes");

/* ── making and freeing ── */

static int check_conf(const struct mk_store_conf *conf)
{
    unsigned shares = 0;
    if (!conf->n_kinds || conf->n_kinds > MK_STORE_KINDS_MAX || conf->bytes_max < MK_STORE_BYTES_MIN)
        return -EINVAL;
    for (unsigned i = 0; i < conf->n_kinds; i++) {
        if (conf->kinds[i].share > 100)
            return -EINVAL;
        shares += conf->kinds[i].items_max ? conf->kinds[i].share : 0;
    }
    return shares < 100 ? 0 : -EINVAL;
}

static bool is_limited(const struct mk_store_kind *kind)
{
    return kind->items_max || kind->share;
}

static unsigned count_sets(const struct mk_store_conf *conf)
{
    unsigned n = 0, shared = 0;
    for (unsigned i = 0; i < conf->n_kinds; i++)
        if (is_limited(&conf->kinds[i]))
            n++;
        else
            shared = 1;
    return n + shared;
}

/* The first set is that of the kinds without limits, if there are any. */
static void assign_sets(struct mk_store *store, const struct mk_store_conf *conf)
{
    struct mk__queue(*queues)[MK_STORE_SHARDS] = (void *)(store + 1);
    unsigned n = 0;
    for (unsigned i = 0; i < store->n_sets; i++)
        store->sets[i].queues = queues + (size_t)i * MK__QUEUES;
    for (unsigned i = 0; i < conf->n_kinds; i++)
        n |= !is_limited(&conf->kinds[i]);
    for (unsigned i = 0; i < conf->n_kinds; i++) {
        struct mk__kind *kind = &store->kinds[i];
        kind->conf = conf->kinds[i];
        kind->counted = kind->conf.items_max > 0;
        kind->set = &store->sets[is_limited(&kind->conf) ? n++ : 0];
        if (!is_limited(&kind->conf))
            continue;
        kind->set->limited = true;
        kind->set->reserved = kind->conf.items_max && kind->conf.share;
        kind->set->items_max = kind->conf.items_max;
    }
}

/* Sets the budget, and gives fingerprints and tables their shares of it. */
static void set_budget(struct mk_store *store, uint64_t bytes_max)
{
    uint64_t before = atomic_load_explicit(&store->history_bytes, memory_order_relaxed), bytes = 0;
    for (unsigned i = 0; i < 2; i++) {
        uint64_t n = bytes_max / (i ? 4 * BYTES_PER_PRINT : BYTES_PER_PRINT);
        bytes += mk__fingerprints_resize(&store->histories[i].seen, n);
        bytes += mk__fingerprints_resize(&store->histories[i].ghosts, n);
    }
    atomic_store_explicit(&store->history_bytes, bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&store->budget.bytes, bytes - before, memory_order_relaxed);
    atomic_store_explicit(&store->budget.max, bytes_max, memory_order_relaxed);
    atomic_store_explicit(&store->budget.reserved, bytes_max / TABLES_PART, memory_order_relaxed);
    mk__store_limit_sets(store);
}

static int open_histories(struct mk_store *store)
{
    int err = 0;
    for (unsigned i = 0; i < 2 && err == 0; i++) {
        err = mk__fingerprints_open(&store->histories[i].seen);
        if (err == 0)
            err = mk__fingerprints_open(&store->histories[i].ghosts);
    }
    return err;
}

static void unmap_store(struct mk_store *store)
{
    for (unsigned i = 0; i < 2; i++) {
        mk__fingerprints_close(&store->histories[i].seen);
        mk__fingerprints_close(&store->histories[i].ghosts);
    }
    pthread_mutex_destroy(&store->limit_lock);
    mk__pages_unmap(store, store->map_bytes);
}

int mk_store_new(const struct mk_store_conf *conf, struct mk_store **ret)
{
    int err = check_conf(conf);
    if (err < 0)
        return err;
    unsigned n_sets = count_sets(conf);
    size_t queues = sizeof(struct mk__queue[MK__QUEUES][MK_STORE_SHARDS]);
    size_t bytes = (sizeof(struct mk_store) + n_sets * queues + 4095) / 4096 * 4096;
    struct mk_store *store = mk__pages_map(bytes);
    if (!store)
        return -ENOMEM;
    store->map_bytes = bytes;
    pthread_mutex_init(&store->limit_lock, NULL);
    err = mk_siphash_key(store->secret);
    if (err == 0)
        err = open_histories(store);
    if (err < 0) {
        unmap_store(store);
        return err;
    }
    store->ctx = conf->ctx;
    store->n_kinds = conf->n_kinds;
    store->n_sets = n_sets;
    mk_epoch_queue_init(&store->retired);
    store->budget.bytes = bytes;
    mk__slabs_init(&store->slabs, &store->budget);
    assign_sets(store, conf);
    set_budget(store, conf->bytes_max);
    *ret = store;
    return 0;
}

static void release_item(struct mk_store *store, struct mk_item *item)
{
    const struct mk_store_kind *kind = &store->kinds[item->kind].conf;
    if (kind->release)
        kind->release(item, store->ctx);
}

static void release_table(struct mk_store *store, struct mk__table *t)
{
    for (uint32_t i = 0; t && i <= t->mask; i++) {
        struct mk_item *item = mk__table_item(t->slots[i]);
        if (item)
            release_item(store, item);
    }
    if (t)
        mk__table_free(&t->retired);
}

void mk_store_free(struct mk_store *store)
{
    if (!store)
        return;
    mk_epoch_queue_release(&store->retired);
    for (unsigned i = 0; i < MK_STORE_SHARDS; i++) {
        release_table(store, store->shards[i].table);
        pthread_mutex_destroy(&store->shards[i].lock);
    }
    mk__slabs_release(&store->slabs);
    unmap_store(store);
}

/* ── limits ── */

void mk_store_set_limit(struct mk_store *store, uint64_t bytes_max)
{
    if (bytes_max < MK_STORE_BYTES_MIN)
        bytes_max = MK_STORE_BYTES_MIN;
    pthread_mutex_lock(&store->limit_lock);
    set_budget(store, bytes_max);
    pthread_mutex_unlock(&store->limit_lock);
    mk__store_shrink(store); /* first: it evicts the items of whole slabs, after which little remains to be done */
    for (unsigned i = 0; i < store->n_sets; i++)
        mk__store_trim_set(store, &store->sets[i], 0);
    mk_store_reclaim(store);
}

void mk_store_set_items_max(struct mk_store *store, unsigned kind, uint64_t items_max)
{
    struct mk__set *set = store->kinds[kind].set;
    assert(kind < store->n_kinds && set->limited);
    atomic_store_explicit(&set->items_max, items_max, memory_order_relaxed);
    mk__store_limit_sets(store);
    mk__store_trim_set(store, set, 0);
    mk_store_reclaim(store);
}

/* ── reading ── */

uint64_t mk_store_hash(const struct mk_store *store, const void *key, size_t len)
{
    return mk_siphash(store->secret, key, len);
}

struct mk_item *mk_store_find(struct mk_store *store, uint64_t hash, const void *key, size_t len)
{
    struct mk__shard *shard = &store->shards[mk__queue_shard_of(hash)];
    struct mk__table *t = atomic_load_explicit(&shard->table, memory_order_acquire);
    struct mk_item *item = t ? mk__table_find(t, hash, key, len) : NULL;
    if (!item)
        return NULL;
    uint8_t uses = __atomic_load_n(&item->uses, __ATOMIC_RELAXED);
    if (uses < USES_MAX)
        __atomic_store_n(&item->uses, uses + 1, __ATOMIC_RELAXED);
    return item;
}

bool mk_store_has(struct mk_store *store, uint64_t hash, const void *key, size_t len)
{
    struct mk__shard *shard = &store->shards[mk__queue_shard_of(hash)];
    pthread_mutex_lock(&shard->lock);
    struct mk__table *t = shard->table;
    bool has = t && mk__table_find(t, hash, key, len);
    pthread_mutex_unlock(&shard->lock);
    return has;
}

struct mk_item *mk_item_get(struct mk_item *item)
{
    __atomic_fetch_add(&item->refs, 1, __ATOMIC_RELAXED);
    return item;
}

void mk_item_put(struct mk_item *item)
{
    uint32_t refs = __atomic_fetch_sub(&item->refs, 1, __ATOMIC_ACQ_REL);
    assert(refs);
    if (refs > 1)
        return;
    release_item(item->store, item);
    mk__slabs_free(&item->store->slabs, item);
}

static struct mk__history *get_history(struct mk_store *store, unsigned kind)
{
    return &store->histories[store->kinds[kind].counted];
}

struct mk__history *mk__store_history_of(struct mk_store *store, const struct mk_item *item)
{
    return get_history(store, item->kind);
}

bool mk_store_admits(struct mk_store *store, unsigned kind, uint64_t hash)
{
    assert(kind < store->n_kinds);
    struct mk__history *history = get_history(store, kind);
    return mk__fingerprints_has(&history->ghosts, hash) || mk__fingerprints_add(&history->seen, hash);
}

/* ── removing ── */

void mk__store_unlink(struct mk_store *store, struct mk_item *item)
{
    struct mk__table *t = store->shards[mk__queue_shard_of(item->hash)].table;
    struct mk__kind *kind = &store->kinds[item->kind];
    _Atomic uintptr_t *slot = mk__table_slot_of(t, item);
    uint64_t bytes = mk__slabs_bytes_of(item);
    if (slot) /* NULL: another item has its slot */
        mk__table_remove(t, slot);
    mk__queue_remove(kind->set, item, bytes);
    __atomic_store_n(&item->state, MK__ITEM_REMOVED, __ATOMIC_RELAXED);
    atomic_fetch_sub_explicit(&kind->set->items, 1, memory_order_relaxed);
    atomic_fetch_sub_explicit(&kind->items, 1, memory_order_relaxed);
    atomic_fetch_sub_explicit(&kind->bytes, bytes, memory_order_relaxed);
}

/* No loop sees the item any more: gives up the reference of the table. */
static void end_pending(struct mk_retired *retired)
{
    struct mk_item *item = MK_CONTAINER_OF(retired, struct mk_item, retired);
    atomic_fetch_sub_explicit(&item->store->pending_bytes, mk__slabs_bytes_of(item), memory_order_relaxed);
    mk_item_put(item);
}

void mk__store_retire(struct mk_store *store, struct mk_item *item)
{
    atomic_fetch_add_explicit(&store->pending_bytes, mk__slabs_bytes_of(item), memory_order_relaxed);
    mk_epoch_retire(&store->retired, &item->retired, end_pending);
}

bool mk_store_remove(struct mk_store *store, struct mk_item *item)
{
    struct mk__shard *shard = &store->shards[mk__queue_shard_of(item->hash)];
    pthread_mutex_lock(&shard->lock);
    bool found = item->state == MK__ITEM_SMALL || item->state == MK__ITEM_MAIN;
    if (found)
        mk__store_unlink(store, item);
    pthread_mutex_unlock(&shard->lock);
    if (found)
        mk__store_retire(store, item);
    return found;
}

uint64_t mk_store_evict(struct mk_store *store, unsigned kind, uint64_t n)
{
    assert(kind < store->n_kinds);
    struct mk__set *set = store->kinds[kind].set;
    uint64_t evicted = 0, seen = atomic_load_explicit(&set->items, memory_order_relaxed);
    while (evicted < n && seen--) {
        struct mk_item *item = mk__store_evict_one(store, set);
        if (!item)
            break;
        evicted += item->kind == kind;
        mk__store_retire(store, item);
    }
    mk_store_reclaim(store);
    return evicted;
}

struct visit {
    struct mk_store *store;
    unsigned kind;
    bool (*fn)(struct mk_item *item, void *ctx);
    void *ctx;
    struct mk_retired *removed; /* linked items */
};

static void visit_item(struct visit *v, struct mk_item *item)
{
    if (item->kind != v->kind || !v->fn(item, v->ctx))
        return;
    mk__store_unlink(v->store, item);
    item->retired.next = v->removed;
    v->removed = &item->retired;
}

/* Under the lock of the shard. A kind with its own queues has its items there; others are searched in the table. */
static void visit_shard(struct visit *v, unsigned shard)
{
    struct mk__set *set = v->store->kinds[v->kind].set;
    struct mk__table *t = set->limited ? NULL : v->store->shards[shard].table;
    struct mk_item *item, *next;
    for (uint32_t i = 0; t && i <= t->mask; i++)
        if ((item = mk__table_item(t->slots[i])))
            visit_item(v, item);
    for (unsigned which = 0; set->limited && which < MK__QUEUES; which++)
        for (item = set->queues[which][shard].oldest; item; item = next) {
            next = mk__queue_next(item);
            visit_item(v, item);
        }
}

void mk_store_each(struct mk_store *store, unsigned kind, bool (*fn)(struct mk_item *item, void *ctx), void *ctx)
{
    assert(kind < store->n_kinds);
    for (unsigned i = 0; i < MK_STORE_SHARDS; i++) {
        struct visit v = {store, kind, fn, ctx, NULL};
        pthread_mutex_lock(&store->shards[i].lock);
        visit_shard(&v, i);
        pthread_mutex_unlock(&store->shards[i].lock);
        for (struct mk_retired *next; v.removed; v.removed = next) {
            next = v.removed->next;
            mk__store_retire(store, MK_CONTAINER_OF(v.removed, struct mk_item, retired));
        }
    }
    mk_store_reclaim(store);
}

size_t mk_store_reclaim(struct mk_store *store)
{
    return mk_epoch_reclaim(&store->retired);
}

/* ── adding ── */

static uint64_t count_block_bytes(size_t len, size_t data_bytes)
{
    uint64_t bytes = sizeof(struct mk_item) + ((uint64_t)len + 15) / 16 * 16 + data_bytes;
    return data_bytes > MK__SLABS_BLOCK_MAX || len > UINT16_MAX ? UINT64_MAX : mk__slabs_block_bytes(bytes);
}

/* Gives the shard a table. Returns false without memory. */
static bool prepare_shard(struct mk_store *store, struct mk__shard *shard)
{
    if (atomic_load_explicit(&shard->table, memory_order_relaxed))
        return true;
    pthread_mutex_lock(&shard->lock);
    struct mk__table *t = shard->table;
    if (!t) {
        t = mk__table_new(&store->budget, MK__TABLE_SLOTS_MIN);
        atomic_store_explicit(&shard->table, t, memory_order_release);
    }
    pthread_mutex_unlock(&shard->lock);
    return t != NULL;
}

static struct mk_item *refuse_item(struct mk__kind *kind)
{
    atomic_fetch_add_explicit(&kind->refused, 1, memory_order_relaxed);
    return NULL;
}

struct mk_item *mk_store_draft(struct mk_store *store, unsigned kind, uint64_t hash, const void *key, size_t len,
                               size_t data_bytes)
{
    assert(kind < store->n_kinds);
    struct mk__kind *k = &store->kinds[kind];
    uint64_t bytes = count_block_bytes(len, data_bytes);
    uint64_t max = atomic_load_explicit(&store->budget.max, memory_order_relaxed);
    if (bytes > max / MK_STORE_ITEM_SHARE || !prepare_shard(store, &store->shards[mk__queue_shard_of(hash)]))
        return refuse_item(k);
    if (!mk__store_trim_set(store, k->set, bytes))
        return refuse_item(k);
    mk_store_reclaim(store);
    struct mk_item *item = mk__store_alloc(store, k->set, bytes - 8);
    if (!item)
        return refuse_item(k);
    item->hash = hash;
    item->key_bytes = (uint32_t)len;
    item->data_bytes = (uint32_t)data_bytes;
    item->kind = (uint8_t)kind;
    item->store = store;
    if (len)
        memcpy(item + 1, key, len);
    __atomic_store_n(&item->refs, 1, __ATOMIC_RELEASE);
    return item;
}

void mk_store_discard(struct mk_store *store, struct mk_item *draft)
{
    assert(draft->state == MK__ITEM_DRAFT);
    mk__slabs_free(&store->slabs, draft);
}

/* Replaces a full table. Returns the old one, to be retired; NULL without memory. */
static struct mk__table *grow_table(struct mk__shard *shard)
{
    struct mk__table *t = shard->table;
    struct mk__table *fresh = mk__table_rebuild(t);
    if (!fresh)
        return NULL;
    atomic_store_explicit(&shard->table, fresh, memory_order_release);
    return t;
}

/* Links an item under the lock of its shard. Returns the one that it replaces, unlinked. */
static struct mk_item *link_item(struct mk_store *store, struct mk__shard *shard, struct mk_item *item)
{
    struct mk__kind *kind = &store->kinds[item->kind];
    uint64_t bytes = mk__slabs_bytes_of(item);
    struct mk_item *old = mk__table_find(shard->table, item->hash, mk_item_key(item), item->key_bytes);
    struct mk__fingerprints *ghosts = &get_history(store, item->kind)->ghosts;
    bool returns = mk__fingerprints_has(ghosts, item->hash);
    if (returns)
        mk__fingerprints_remove(ghosts, item->hash);
    mk__queue_append(kind->set, item, returns ? MK__QUEUE_MAIN : MK__QUEUE_SMALL, bytes);
    atomic_fetch_add_explicit(&kind->set->items, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&kind->items, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&kind->bytes, bytes, memory_order_relaxed);
    if (old)
        mk__table_replace(mk__table_slot_of(shard->table, old), item);
    else
        old = mk__table_add(shard->table, item);
    if (old)
        mk__store_unlink(store, old);
    return old;
}

void mk_store_put(struct mk_store *store, struct mk_item *draft)
{
    struct mk__shard *shard = &store->shards[mk__queue_shard_of(draft->hash)];
    struct mk__set *set = store->kinds[draft->kind].set;
    assert(draft->state == MK__ITEM_DRAFT);
    pthread_mutex_lock(&shard->lock);
    bool full = mk__table_is_full(shard->table);
    struct mk__table *table = full ? grow_table(shard) : NULL;
    struct mk_item *old = link_item(store, shard, draft);
    pthread_mutex_unlock(&shard->lock);
    if (table)
        mk_epoch_retire(&store->retired, &table->retired, mk__table_free);
    if (old)
        mk__store_retire(store, old);
    if (full && !table)
        mk__store_reserve_tables(store);
    mk__store_trim_set(store, set, 0);
    mk__store_refill(store, set);
    mk_store_reclaim(store);
}

/* ── figures ── */

void mk_store_get_stats(struct mk_store *store, unsigned kind, struct mk_store_stats *ret)
{
    assert(kind < store->n_kinds);
    struct mk__kind *k = &store->kinds[kind];
    *ret = (struct mk_store_stats){
        .items = atomic_load_explicit(&k->items, memory_order_relaxed),
        .bytes = atomic_load_explicit(&k->bytes, memory_order_relaxed),
        .evicted = atomic_load_explicit(&k->evicted, memory_order_relaxed),
        .refused = atomic_load_explicit(&k->refused, memory_order_relaxed),
    };
}

uint64_t mk_store_bytes(struct mk_store *store)
{
    return atomic_load_explicit(&store->budget.bytes, memory_order_relaxed);
}

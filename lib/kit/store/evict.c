// SPDX-License-Identifier: Apache-2.0
/*
 * Evicts items of a store: which set has to give memory, which of its items are evicted, and what is done when the
 * memory that they leave is in pieces.
 */
#include "store.h"

enum {
    STEPS_MAX = 128,     /* items that one eviction may keep before it takes the next, whatever its use */
    ROUNDS = 8,          /* evictions for a draft that are tried before memory is cleared in one place */
    ITEM_BYTES = 320,    /* likely, of a kind with a limit of items: a head, a key, little data */
    HELD_MAX = 256,      /* items that are evicted at once from one place */
    SPARE_PART = 128,    /* this fraction of the budget is kept free for the next drafts */
    TABLES_PART_MAX = 8, /* what is reserved for tables is doubled while it is less than this fraction */
    PENDING_PART = 32,   /* with more than this fraction waiting for the end of turns no more is evicted */
};

static uint64_t read_counter(const _Atomic uint64_t *n)
{
    return atomic_load_explicit(n, memory_order_relaxed);
}

/* ── limits ── */

/* Returns what others leave free for a kind: its share, but not more than its items are likely to need. */
static uint64_t count_reserved(const struct mk__set *set, uint64_t share)
{
    uint64_t likely = read_counter(&set->items_max) * ITEM_BYTES;
    return !set->reserved ? 0 : likely < share ? likely : share;
}

void mk__store_limit_sets(struct mk_store *store)
{
    uint64_t max = read_counter(&store->budget.max), reserved = 0;
    uint64_t fixed = store->map_bytes + read_counter(&store->history_bytes) + read_counter(&store->budget.reserved);
    uint64_t usable = (max - fixed) / 16 * 15; /* what blocks cannot use of slabs is allowed for */
    for (unsigned i = 0; i < store->n_kinds; i++) {
        const struct mk__kind *kind = &store->kinds[i];
        uint64_t share = max / 100 * kind->conf.share;
        if (kind->conf.share)
            atomic_store_explicit(&kind->set->bytes_max, share, memory_order_relaxed);
        reserved += count_reserved(kind->set, share);
    }
    for (unsigned i = 0; i < store->n_sets; i++)
        if (!store->sets[i].limited)
            atomic_store_explicit(&store->sets[i].bytes_max, reserved ? usable - reserved : 0, memory_order_relaxed);
}

static bool is_above_limits(const struct mk__set *set, uint64_t more)
{
    uint64_t items_max = read_counter(&set->items_max), bytes_max = read_counter(&set->bytes_max);
    return (items_max && read_counter(&set->items) > items_max) || (bytes_max && mk__set_bytes(set) + more > bytes_max);
}

bool mk__store_trim_set(struct mk_store *store, struct mk__set *set, uint64_t bytes)
{
    struct mk_item *item;
    bool above;
    while ((above = is_above_limits(set, bytes)) && (item = mk__store_evict_one(store, set)))
        mk__store_retire(store, item);
    return !above;
}

/* ── S3-FIFO ── */

/* Returns the next shard with an item in that queue, MK_STORE_SHARDS if there is none. */
static unsigned find_shard(struct mk__set *set, enum mk__queue_of which)
{
    unsigned turn = atomic_load_explicit(&set->turn[which], memory_order_relaxed);
    for (unsigned i = 0; i < MK_STORE_SHARDS; i++) {
        unsigned shard = (turn + i) % MK_STORE_SHARDS;
        if (mk__queue_has(set, which, shard)) {
            atomic_store_explicit(&set->turn[which], shard + 1, memory_order_relaxed);
            return shard;
        }
    }
    return MK_STORE_SHARDS;
}

/* Decides about the oldest item of a queue: returns it if it was evicted, NULL if it is kept in the main queue. */
static struct mk_item *evict_or_keep(struct mk_store *store, struct mk__set *set, enum mk__queue_of which,
                                     struct mk_item *item, bool may_keep)
{
    uint64_t bytes = mk__slabs_bytes_of(item);
    uint8_t uses = __atomic_load_n(&item->uses, __ATOMIC_RELAXED);
    if (!uses || !may_keep) {
        mk__store_unlink(store, item);
        if (which == MK__QUEUE_SMALL)
            mk__fingerprints_add(&mk__store_history_of(store, item)->ghosts, item->hash);
        atomic_fetch_add_explicit(&store->kinds[item->kind].evicted, 1, memory_order_relaxed);
        return item;
    }
    __atomic_store_n(&item->uses, which == MK__QUEUE_SMALL ? 0 : (uint8_t)(uses - 1), __ATOMIC_RELAXED);
    mk__queue_remove(set, item, bytes);
    mk__queue_append(set, item, MK__QUEUE_MAIN, bytes);
    return NULL;
}

struct mk_item *mk__store_evict_one(struct mk_store *store, struct mk__set *set)
{
    for (unsigned i = 0;; i++) {
        enum mk__queue_of which = mk__queue_choose(set);
        unsigned n = find_shard(set, which);
        if (n == MK_STORE_SHARDS)
            n = find_shard(set, which = !which);
        if (n == MK_STORE_SHARDS)
            return NULL;
        struct mk__shard *shard = &store->shards[n];
        struct mk_item *evicted = NULL;
        pthread_mutex_lock(&shard->lock);
        struct mk_item *oldest = set->queues[which][n].oldest;
        if (oldest)
            evicted = evict_or_keep(store, set, which, oldest, i < STEPS_MAX);
        pthread_mutex_unlock(&shard->lock);
        if (evicted)
            return evicted;
    }
}

/* ── memory for drafts ── */

/* Returns the set that has to give memory for an item of `own`; NULL if none has anything to give. */
static struct mk__set *choose_set(struct mk_store *store, struct mk__set *own)
{
    struct mk__set *best = NULL;
    if (own->limited && read_counter(&own->items_max))
        return mk__set_bytes(own) ? own : NULL;
    for (unsigned pass = 0; pass < 2 && !best; pass++)
        for (unsigned i = 0; i < store->n_sets; i++) {
            struct mk__set *set = &store->sets[i];
            bool counts = pass || !read_counter(&set->items_max);
            if (counts && mk__set_bytes(set) > (best ? mk__set_bytes(best) : 0))
                best = set;
        }
    return best;
}

/* Evicts items until they had `bytes` bytes. Returns false if there was none. */
static bool evict_bytes(struct mk_store *store, struct mk__set *own, uint64_t bytes)
{
    uint64_t evicted = 0;
    while (evicted < bytes) {
        struct mk__set *set = choose_set(store, own);
        struct mk_item *item = set ? mk__store_evict_one(store, set) : NULL;
        if (!item)
            return evicted > 0;
        evicted += mk__slabs_bytes_of(item);
        mk__store_retire(store, item);
    }
    return true;
}

static bool may_evict(const void *p)
{
    enum mk__item_state state = mk__queue_state(p);
    return state == MK__ITEM_SMALL || state == MK__ITEM_MAIN;
}

/* As mk_item_get(), but false for an item that is being freed. */
static bool hold_item(void *p)
{
    struct mk_item *item = p;
    uint32_t refs = __atomic_load_n(&item->refs, __ATOMIC_RELAXED);
    while (refs)
        if (__atomic_compare_exchange_n(&item->refs, &refs, refs + 1, true, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            return true;
    return false;
}

/* Evicts the items that are held. */
static void evict_held(struct mk_store *store, void **held, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        struct mk_item *item = held[i];
        if (mk_store_remove(store, item))
            atomic_fetch_add_explicit(&store->kinds[item->kind].evicted, 1, memory_order_relaxed);
        mk_item_put(item);
    }
}

/* Evicts the items of one place, so that their memory makes one block. */
static void clear_place(struct mk_store *store, size_t bytes)
{
    void *held[HELD_MAX];
    evict_held(store, held, mk__slabs_window(&store->slabs, bytes, may_evict, hold_item, held, HELD_MAX));
}

static struct mk_item *try_alloc(struct mk_store *store, size_t bytes)
{
    struct mk_item *item = mk__slabs_alloc(&store->slabs, bytes, sizeof(*item));
    if (item)
        atomic_store_explicit(&store->failures, 0, memory_order_relaxed);
    return item;
}

struct mk_item *mk__store_alloc(struct mk_store *store, struct mk__set *set, size_t bytes)
{
    struct mk_item *item = try_alloc(store, bytes);
    for (unsigned i = 0; !item && i <= ROUNDS; i++) {
        if (read_counter(&store->pending_bytes) > 2 * bytes + read_counter(&store->budget.max) / PENDING_PART)
            break;
        bool is_scattered =
            i == ROUNDS || atomic_fetch_add_explicit(&store->failures, 1, memory_order_relaxed) > 2 * ROUNDS;
        if (is_scattered && !set->reserved)
            clear_place(store, bytes);
        else if (!evict_bytes(store, set, 2 * bytes))
            break;
        mk_store_reclaim(store);
        item = try_alloc(store, bytes);
    }
    return item;
}

void mk__store_refill(struct mk_store *store, struct mk__set *set)
{
    uint64_t wanted = read_counter(&store->budget.max) / SPARE_PART;
    uint64_t left =
        mk__budget_left(&store->budget) + read_counter(&store->slabs.free_bytes) + read_counter(&store->pending_bytes);
    if (left < wanted && !read_counter(&set->items_max))
        evict_bytes(store, set, wanted - left);
}

void mk__store_shrink(struct mk_store *store)
{
    uint64_t bytes = read_counter(&store->budget.bytes) + mk__budget_spare(&store->budget),
             max = read_counter(&store->budget.max);
    void *held[HELD_MAX];
    unsigned n;
    if (bytes <= max)
        return;
    mk__slabs_close(&store->slabs, bytes - max);
    while ((n = mk__slabs_closing(&store->slabs, may_evict, hold_item, held, HELD_MAX)))
        evict_held(store, held, n);
    mk_store_reclaim(store);
}

void mk__store_reserve_tables(struct mk_store *store)
{
    uint64_t reserved = read_counter(&store->budget.reserved);
    if (mk__budget_spare(&store->budget) < reserved / 2 &&
        reserved < read_counter(&store->budget.max) / TABLES_PART_MAX)
        atomic_store_explicit(&store->budget.reserved, reserved * 2, memory_order_relaxed);
    mk__store_shrink(store);
}

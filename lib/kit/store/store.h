// SPDX-License-Identifier: Apache-2.0
/*
 * The inside of <monkey/kit/store.h>.
 *
 *     store ─┬─ shards: lock, table                      found by the upper bits of the hash
 *            ├─ sets: S3-FIFO queues, one pair per shard  of the kinds without limits together, of each other kind
 *            ├─ slabs                                    memory of items
 *            ├─ histories: fingerprints                   what was asked for once; what was evicted
 *            └─ retired                                  what waits for the end of turns
 *
 * Locks: that of a shard, in it that of the slabs. No thread holds two shards. Functions of the kinds are called under
 * no lock.
 */
#ifndef MK_STORE_STORE_H
#define MK_STORE_STORE_H

#include <monkey/kit/store.h>

#include <pthread.h>
#include <stdatomic.h>

#include "fingerprints.h"
#include "pages.h"
#include "queues.h"
#include "slabs.h"
#include "table.h"

struct mk__shard {
    _Alignas(64) pthread_mutex_t lock; /* zeros of the mapping, which are an open one: not written before its use */
    _Atomic(struct mk__table *) table; /* NULL: no item yet */
};

/* What is remembered without being kept: of kinds with a limit of items apart, whose keys clients may invent. */
struct mk__history {
    struct mk__fingerprints seen, ghosts;
};

/* Figures of a kind; changed by all threads. */
struct mk__kind {
    struct mk_store_kind conf;
    struct mk__set *set;
    bool counted; /* it was created with a limit of items */
    _Alignas(64) _Atomic uint64_t items;
    _Atomic uint64_t bytes, evicted, refused;
};

struct mk_store {
    uint64_t secret[2];
    void *ctx;
    size_t map_bytes; /* of this struct, its sets and fingerprints */
    unsigned n_kinds, n_sets;
    struct mk__set sets[MK_STORE_KINDS_MAX + 1];
    pthread_mutex_t limit_lock;      /* while the budget is changed */
    struct mk__history histories[2]; /* of kinds without, and with a limit of items */
    _Atomic uint64_t history_bytes;  /* of their fingerprints */
    struct mk_epoch_queue retired;
    _Alignas(64) _Atomic uint64_t pending_bytes; /* of items that wait for the end of turns */
    _Atomic unsigned failures;                   /* drafts without memory since the last with */
    struct mk__budget budget;
    _Alignas(64) struct mk__slabs slabs;
    struct mk__kind kinds[MK_STORE_KINDS_MAX];
    struct mk__shard shards[MK_STORE_SHARDS];
};

/* ── store.c ── */

/* Takes an item out of the table and its queue, under the lock of its shard. The caller then retires it. */
void mk__store_unlink(struct mk_store *store, struct mk_item *item);
/* Frees an unlinked item when it may be. Under no lock. */
void mk__store_retire(struct mk_store *store, struct mk_item *item);
struct mk__history *mk__store_history_of(struct mk_store *store, const struct mk_item *item);

/* ── evict.c ── */

/* Computes the limits of the sets from the budget. */
void mk__store_limit_sets(struct mk_store *store);
/* Evicts items of a set that is above its limits, or would be with `bytes` bytes more. Returns whether that helped. */
bool mk__store_trim_set(struct mk_store *store, struct mk__set *set, uint64_t bytes);
/* Evicts one item. Returns it, unlinked but not retired; NULL if the set is empty. */
struct mk_item *mk__store_evict_one(struct mk_store *store, struct mk__set *set);
/* Returns memory for a block of an item of that set; evicts others for it. NULL: none now. */
struct mk_item *mk__store_alloc(struct mk_store *store, struct mk__set *set, size_t bytes);
/* Evicts so that some memory will be free for the next drafts. */
void mk__store_refill(struct mk_store *store, struct mk__set *set);
/* Empties slabs until the memory is within the budget, as far as references allow. */
void mk__store_shrink(struct mk_store *store);
/* Gives tables more of the budget, because one could not grow: empties slabs for it. */
void mk__store_reserve_tables(struct mk_store *store);

#endif

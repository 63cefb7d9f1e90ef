// SPDX-License-Identifier: Apache-2.0
#ifndef MK_STORE_STORE_H
#define MK_STORE_STORE_H

#include "pages.h"

#include <monkey/base/epoch.h>
#include <monkey/kit/store.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The memory of items: blocks of slabs.
 *
 *     slab: head │ block: size, size of the one before │ bytes ... │ block ... │ free block: links │ ...
 *
 * Free blocks are in bins by size, and neighbours that are free become one block: memory that small items leave is
 * used for large ones and the other way round. Slabs grow with the store, from 64 KB to 2 MB.
 */
enum {
    MK__SLABS_ROWS = 18, /* powers of two, from 32 bytes to 4 MB */
    MK__SLABS_COLUMNS = 16,
    MK__SLABS_BLOCK_MAX = 1 << 30,
};

struct mk__slab;
struct mk__block;

struct mk__slabs {
    struct mk__budget *budget;
    pthread_mutex_t lock; /* of what follows */
    struct mk__slab *first;
    uint64_t map_bytes;
    unsigned n_empty;               /* slabs without a used block, at most 1 */
    _Atomic uint64_t free_bytes;    /* of the blocks in bins; read without the lock */
    _Atomic uint64_t closing_bytes; /* of slabs that are emptied */
    uint32_t rows;                  /* a bit for each row with a block */
    uint16_t columns[MK__SLABS_ROWS];
    struct mk__block *bins[MK__SLABS_ROWS][MK__SLABS_COLUMNS];
};

void mk__slabs_init(struct mk__slabs *s, struct mk__budget *budget);
/* Unmaps all slabs, whatever is in them. */
void mk__slabs_release(struct mk__slabs *s);

/* Returns the bytes that a block with `bytes` bytes takes. */
size_t mk__slabs_block_bytes(size_t bytes);
/* Returns the bytes that this block takes. */
size_t mk__slabs_bytes_of(const void *p);

/*
 * Returns `bytes` bytes, at most MK__SLABS_BLOCK_MAX, that lie 8 bytes after a multiple of 16; the first `zeroed` of
 * them are 0. Returns NULL without a free block and without budget or memory for a slab. Any thread.
 */
void *mk__slabs_alloc(struct mk__slabs *s, size_t bytes, size_t zeroed);
void mk__slabs_free(struct mk__slabs *s, void *p);

/*
 * Chooses neighbouring blocks of one slab that together have room for `bytes` bytes, and of which those that are used
 * are allowed by may(). Calls hold() for each used block; up to `max` for which it returned true are stored in `held`.
 * Both are called under the lock. Returns their number.
 */
unsigned mk__slabs_window(struct mk__slabs *s, size_t bytes, bool (*may)(const void *p), bool (*hold)(void *p),
                          void **held, unsigned max);

/* Closes slabs of `bytes` bytes or more, if there are so many: their memory is not used again, but unmapped. */
void mk__slabs_close(struct mk__slabs *s, uint64_t bytes);
/* As mk__slabs_window(), for any used blocks of slabs that are closed. */
unsigned mk__slabs_closing(struct mk__slabs *s, bool (*may)(const void *p), bool (*hold)(void *p), void **held,
                           unsigned max);

/*
 * The queues by which items are evicted: S3-FIFO. New items enter a small queue, a tenth of the bytes; those that are
 * asked for while they are in it move to the main queue, others leave. Items of the main queue that were asked for are
 * appended again. An item that comes back soon after it left enters the main queue.
 *
 * Each shard of the store has the two queues of a set. The totals of all shards decide which of them is too long; its
 * items are taken from the shards in turn.
 */
enum mk__queue_of { MK__QUEUE_SMALL, MK__QUEUE_MAIN, MK__QUEUES };

enum mk__item_state {
    MK__ITEM_DRAFT, /* 0: also memory of which no item has been made yet */
    MK__ITEM_SMALL, /* in the table and in this queue */
    MK__ITEM_MAIN,
    MK__ITEM_REMOVED,
};

/* Other threads read the state of an item without the lock of its shard. */
static inline enum mk__item_state mk__queue_state(const struct mk_item *item)
{
    return (enum mk__item_state)__atomic_load_n(&item->state, __ATOMIC_RELAXED);
}

static inline unsigned mk__queue_shard_of(uint64_t hash)
{
    return (unsigned)(hash >> 58);
}

struct mk__queue {
    struct mk_item *oldest, *newest; /* linked by `node`: next is the newer one */
};

struct mk__set {
    _Alignas(64) _Atomic uint64_t bytes[MK__QUEUES];
    _Atomic uint64_t items;
    _Atomic uint64_t items_max, bytes_max;       /* 0: none */
    _Atomic unsigned turn[MK__QUEUES];           /* the shard whose turn it is, modulo their number */
    bool limited;                                /* it has one of these limits, and one kind */
    bool reserved;                               /* both: the others leave its share free */
    struct mk__queue (*queues)[MK_STORE_SHARDS]; /* MK__QUEUES of them; apart from what is written at the start */
};

static inline uint64_t mk__set_bytes(const struct mk__set *set)
{
    return atomic_load_explicit(&set->bytes[MK__QUEUE_SMALL], memory_order_relaxed) +
           atomic_load_explicit(&set->bytes[MK__QUEUE_MAIN], memory_order_relaxed);
}

/* Under the lock of the shard of the item; `bytes`: what it takes. Set or use its state. */
void mk__queue_append(struct mk__set *set, struct mk_item *item, enum mk__queue_of which, uint64_t bytes);
void mk__queue_remove(struct mk__set *set, struct mk_item *item, uint64_t bytes);

/* Returns the item that was appended after this one; NULL if it is the newest. Under the lock of the shard. */
struct mk_item *mk__queue_next(const struct mk_item *item);
/* Returns the queue from which the next item should be taken. */
enum mk__queue_of mk__queue_choose(const struct mk__set *set);
/* Returns true if the queue of a shard has items. Without its lock; the answer may be old. */
bool mk__queue_has(const struct mk__set *set, enum mk__queue_of which, unsigned shard);

/*
 * The hash table of a shard: open addressing with linear probing. A slot is the address of an item and 16 bits of its
 * hash, so that a lookup touches no other item.
 *
 * Readers take no lock. Writers hold the lock of the shard, and replace a table that is too small or too full of
 * removed slots by a new one; the old one is retired.
 */
struct mk__table {
    struct mk_retired retired;
    struct mk__budget *budget;
    uint32_t mask;        /* slots - 1 */
    uint32_t items, full; /* full: slots of items and of removed items; less than the slots */
    _Atomic uintptr_t slots[];
};

enum { MK__TABLE_SLOTS_MIN = 8 };

/* Returns a table of `slots` slots, a power of two; NULL without budget or memory. */
struct mk__table *mk__table_new(struct mk__budget *budget, uint32_t slots);
/* For mk_epoch_retire(). */
void mk__table_free(struct mk_retired *retired);

/* Returns the item with this key; NULL if it is not there. Any thread that may see the table. */
struct mk_item *mk__table_find(struct mk__table *t, uint64_t hash, const void *key, size_t len);
/* Returns the slot of this item; NULL if another item has taken it. Under the lock. */
_Atomic uintptr_t *mk__table_slot_of(struct mk__table *t, const struct mk_item *item);
/* Returns the item of a slot; NULL if it has none. */
struct mk_item *mk__table_item(uintptr_t slot);
/* Stores another item with the same hash in a slot. */
void mk__table_replace(_Atomic uintptr_t *slot, struct mk_item *item);

/*
 * Adds an item whose key is not in the table. Returns NULL, or, if there is no slot left, an item that it takes the
 * slot of: the caller treats that as removed.
 */
struct mk_item *mk__table_add(struct mk__table *t, struct mk_item *item);
void mk__table_remove(struct mk__table *t, _Atomic uintptr_t *slot);

/* Returns true if the next item should go into a new table. */
bool mk__table_is_full(const struct mk__table *t);
/* Returns a new table with the same items and room for more; NULL without budget or memory. */
struct mk__table *mk__table_rebuild(struct mk__table *t);

/*
 * A set of hashes that were seen lately, of bounded size: 4 bytes for each. Threads share it without locks; an update
 * that is lost in a race only makes a hash look new. A hash counts as seen until about as many others as the set has
 * places have been added after it.
 */
struct mk__fingerprints {
    void *map;
    _Atomic uint32_t *entries; /* of the map, in groups of a cache line, which are found by the hash */
    _Atomic uint64_t group_mask;
    _Atomic uint64_t added;
};

enum { MK__FINGERPRINTS_MAX = 1 << 21 };

/* Maps a set without places. Pages take memory when they are used. Returns 0 or -ENOMEM. */
int mk__fingerprints_open(struct mk__fingerprints *f);
void mk__fingerprints_close(struct mk__fingerprints *f);
/*
 * Gives the set places for about `n` hashes, at most MK__FINGERPRINTS_MAX. Other threads may use it meanwhile; it
 * forgets some of what it has, or all. Returns the bytes of the places.
 */
uint64_t mk__fingerprints_resize(struct mk__fingerprints *f, uint64_t n);

bool mk__fingerprints_has(const struct mk__fingerprints *f, uint64_t hash);
/* Adds a hash, or makes it new again. Returns true if it was seen before. */
bool mk__fingerprints_add(struct mk__fingerprints *f, uint64_t hash);
void mk__fingerprints_remove(struct mk__fingerprints *f, uint64_t hash);

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

// SPDX-License-Identifier: Apache-2.0
/*
 * A store: one hash table of immutable items for all threads of the process, within one budget of memory. What plugins
 * keep between requests goes here: files, compressed variants, responses of backends.
 *
 *     key ─► SipHash ─► one of 64 shards: a table that is read without locks; a lock and S3-FIFO queues for changes
 *     item: head, key, data ─► a block of a slab
 *
 * A lookup takes no lock and writes at most two bits. Items never change once they are in, but for what their owner
 * declares atomic in the data. An item that was removed, replaced or evicted stays valid for each loop until the turn
 * ends in which that has found it (<monkey/base/epoch.h>), and as long as a reference is held.
 *
 * Any thread may call these functions, with the exceptions that their comments name. None of them waits for another
 * thread, but for short sections under a lock.
 *
 * The functions are in the kit, libmonkey-kit.a: plugins link it (pkg-config monkey-kit).
 */
#ifndef MONKEY_STORE_H
#define MONKEY_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../base/epoch.h"
#include "../base/list.h"
#include "../status.h"

MK_C_BEGIN

struct mk_store;

enum {
    MK_STORE_SHARDS = 64,
    MK_STORE_KINDS_MAX = 8,
    MK_STORE_BYTES_MIN = 512 * 1024, /* of a budget */
    MK_STORE_ITEM_SHARE = 64,        /* an item takes at most this fraction of the budget */
};

/* An item. The members up to `kind` are set by mk_store_draft() and do not change; the others are the store's. */
struct mk_item {
    uint64_t hash; /* of the key */
    uint32_t key_bytes, data_bytes;
    uint8_t kind;  /* index into the kinds of the store */
    uint8_t uses;  /* lookups since the queues have looked at it, at most 3 */
    uint8_t state; /* of enum in lib/kit/store/store.h */
    uint32_t refs;
    struct mk_store *store;
    union {
        struct mk_list node;       /* in a queue */
        struct mk_retired retired; /* removed */
    };
};

/* Returns the key of an item: `key_bytes` bytes. */
static inline const void *mk_item_key(const struct mk_item *item)
{
    return item + 1;
}

/* Returns the data of an item, aligned to 16 bytes. */
static inline void *mk_item_data(const struct mk_item *item)
{
    return (char *)(uintptr_t)(item + 1) + ((size_t)item->key_bytes + 15) / 16 * 16;
}

struct mk_store_kind {
    const char *name;   /* static */
    uint64_t items_max; /* 0: no limit but memory */
    /*
     * Called once for each item that was put into the store, before its memory is freed: closes descriptors. Any
     * thread, under no lock. NULL: nothing is to be done.
     */
    void (*release)(struct mk_item *item, void *ctx);
    /*
     * Percent of the budget that the kind may fill at most; 0: all of it. A kind with `items_max` or `share` has its
     * own queues: its limits evict its items only. A kind with `items_max` never displaces items of others; with
     * both, the others leave free what it is likely to need of its share.
     */
    unsigned share;
};

struct mk_store_conf {
    uint64_t bytes_max; /* the budget: all memory of the store, at least MK_STORE_BYTES_MIN */
    const struct mk_store_kind *kinds;
    unsigned n_kinds; /* at most MK_STORE_KINDS_MAX */
    void *ctx;        /* of release() */
};

/*
 * Makes an empty store. The kinds are copied. Memory is taken as items come. Returns 0, -EINVAL (no kind, too many of
 * them, a budget that is too small, shares above 100), -ENOMEM, or -errno of mk_random().
 */
MK_API int mk_store_new(const struct mk_store_conf *conf, struct mk_store **ret);
/* Releases all items and frees the store; NULL is allowed. No thread uses it or its items any more. */
MK_API void mk_store_free(struct mk_store *store);

/*
 * Changes the budget (raised to MK_STORE_BYTES_MIN if it is less). Items above it are evicted, and memory goes back to
 * the kernel as soon as no loop sees them and no reference is held.
 */
MK_API void mk_store_set_limit(struct mk_store *store, uint64_t bytes_max);
/* Changes the limit of a kind that was created with one; items above it are evicted. */
MK_API void mk_store_set_items_max(struct mk_store *store, unsigned kind, uint64_t items_max);

/* Returns the hash of a key: SipHash-1-3 with the random key of the store. */
MK_API uint64_t mk_store_hash(const struct mk_store *store, const void *key, size_t len);

/*
 * Looks an item up. Returns NULL if it is not there. In a loop's thread, which has joined the epochs: the item is valid
 * until the turn ends. (A thread that changes the table at the same time may hide an item for that moment.)
 */
MK_API struct mk_item *mk_store_find(struct mk_store *store, uint64_t hash, const void *key, size_t len);

/* Returns whether an item with the key is in the table. Any thread, also one without a loop. */
MK_API bool mk_store_has(struct mk_store *store, uint64_t hash, const void *key, size_t len);

/* Holds an item beyond the turn, and returns it. Only while it is valid. */
MK_API struct mk_item *mk_item_get(struct mk_item *item);
/* Gives up a reference. The caller must not use the item any more, unless it has found it in this turn. */
MK_API void mk_item_put(struct mk_item *item);

/*
 * Returns true if the key was asked for before, lately; remembers it otherwise. Keys are remembered as fingerprints in
 * memory of a fixed size, in which old ones are replaced. An answer is wrong once in 30,000 calls or less. Keys of
 * kinds that were created with `items_max` are remembered apart: when clients invent many of them, such as names that
 * do not exist, the others are remembered as long as without.
 */
MK_API bool mk_store_admits(struct mk_store *store, unsigned kind, uint64_t hash);

/*
 * Reserves an item of `data_bytes`, whose data the caller then writes, and copies the key; evicts others for it. No
 * other thread sees it before mk_store_put(). Returns NULL if the item would be larger than 1/64 of the budget, or if
 * there is no memory now: that of evicted items becomes free when the turns have ended that may have seen them.
 */
MK_API struct mk_item *mk_store_draft(struct mk_store *store, unsigned kind, uint64_t hash, const void *key, size_t len,
                                      size_t data_bytes);
/*
 * Puts a draft into the table, in place of an item with the same key and hash. It is found from now on and must not
 * change. It is valid for the caller as if it had been found; a thread without a loop takes a reference before it puts
 * an item that it still needs.
 */
MK_API void mk_store_put(struct mk_store *store, struct mk_item *draft);
/* Frees a draft without calling release(). */
MK_API void mk_store_discard(struct mk_store *store, struct mk_item *draft);

/* Removes an item for which the caller's thread is valid. Returns false if it was not in the table any more. */
MK_API bool mk_store_remove(struct mk_store *store, struct mk_item *item);
/*
 * Evicts up to `n` items that the queues of a kind would evict first; kinds without limits share their queues, and only
 * those of this kind count. Returns how many were evicted.
 */
MK_API uint64_t mk_store_evict(struct mk_store *store, unsigned kind, uint64_t n);
/*
 * Calls `fn` for the items of a kind, shard by shard under its lock: it must not call functions of the store but
 * mk_item_get(). It returns true to remove the item.
 */
MK_API void mk_store_each(struct mk_store *store, unsigned kind, bool (*fn)(struct mk_item *item, void *ctx),
                          void *ctx);
/*
 * Frees what no loop can see any more. The functions that change the store do this; the owner calls it now and then, so
 * that release() is called for the last items, too. In a turn of a loop that has joined the epochs, what was removed in
 * that turn still waits. Returns how many items and tables wait.
 */
MK_API size_t mk_store_reclaim(struct mk_store *store);

struct mk_store_stats {
    uint64_t items;
    uint64_t bytes;   /* of these items, with heads and keys */
    uint64_t evicted; /* for memory, a limit or mk_store_evict() */
    uint64_t refused; /* drafts without room */
};

/* Reads the figures of a kind, which may change meanwhile. */
MK_API void mk_store_get_stats(struct mk_store *store, unsigned kind, struct mk_store_stats *ret);
/* Returns the memory of the store: slabs, tables and fingerprints. Never above the budget (see mk_store_set_limit()).
 */
MK_API uint64_t mk_store_bytes(struct mk_store *store);

MK_C_END

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * The queues by which items are evicted: S3-FIFO. New items enter a small queue, a tenth of the bytes; those that are
 * asked for while they are in it move to the main queue, others leave. Items of the main queue that were asked for are
 * appended again. An item that comes back soon after it left enters the main queue.
 *
 * Each shard of the store has the two queues of a set. The totals of all shards decide which of them is too long; its
 * items are taken from the shards in turn.
 */
#ifndef MK_STORE_QUEUES_H
#define MK_STORE_QUEUES_H

#include <monkey/kit/store.h>

#include <stdatomic.h>

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

#endif

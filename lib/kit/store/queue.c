// SPDX-License-Identifier: Apache-2.0
#include "store.h"

enum { SMALL_PERCENT = 10 };

static struct mk_item *get_item(struct mk_list *node)
{
    return node ? MK_CONTAINER_OF(node, struct mk_item, node) : NULL;
}

static struct mk__queue *get_queue(struct mk__set *set, const struct mk_item *item)
{
    enum mk__queue_of which = item->state == MK__ITEM_SMALL ? MK__QUEUE_SMALL : MK__QUEUE_MAIN;
    return &set->queues[which][mk__queue_shard_of(item->hash)];
}

static void set_oldest(struct mk__queue *queue, struct mk_item *item)
{
    __atomic_store_n(&queue->oldest, item, __ATOMIC_RELAXED);
}

void mk__queue_append(struct mk__set *set, struct mk_item *item, enum mk__queue_of which, uint64_t bytes)
{
    __atomic_store_n(&item->state, which == MK__QUEUE_SMALL ? MK__ITEM_SMALL : MK__ITEM_MAIN, __ATOMIC_RELAXED);
    struct mk__queue *queue = get_queue(set, item);
    item->node.next = NULL;
    item->node.prev = queue->newest ? &queue->newest->node : NULL;
    if (queue->newest)
        queue->newest->node.next = &item->node;
    else
        set_oldest(queue, item);
    queue->newest = item;
    atomic_fetch_add_explicit(&set->bytes[which], bytes, memory_order_relaxed);
}

void mk__queue_remove(struct mk__set *set, struct mk_item *item, uint64_t bytes)
{
    struct mk__queue *queue = get_queue(set, item);
    enum mk__queue_of which = item->state == MK__ITEM_SMALL ? MK__QUEUE_SMALL : MK__QUEUE_MAIN;
    struct mk_item *older = get_item(item->node.prev), *newer = get_item(item->node.next);
    if (older)
        older->node.next = item->node.next;
    else
        set_oldest(queue, newer);
    if (newer)
        newer->node.prev = item->node.prev;
    else
        queue->newest = older;
    atomic_fetch_sub_explicit(&set->bytes[which], bytes, memory_order_relaxed);
}

struct mk_item *mk__queue_next(const struct mk_item *item)
{
    return get_item(item->node.next);
}

enum mk__queue_of mk__queue_choose(const struct mk__set *set)
{
    uint64_t small = atomic_load_explicit(&set->bytes[MK__QUEUE_SMALL], memory_order_relaxed);
    uint64_t main = atomic_load_explicit(&set->bytes[MK__QUEUE_MAIN], memory_order_relaxed);
    return !main || small * 100 > (small + main) * SMALL_PERCENT ? MK__QUEUE_SMALL : MK__QUEUE_MAIN;
}

bool mk__queue_has(const struct mk__set *set, enum mk__queue_of which, unsigned shard)
{
    return __atomic_load_n(&set->queues[which][shard].oldest, __ATOMIC_RELAXED) != NULL;
}

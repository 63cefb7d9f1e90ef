// SPDX-License-Identifier: Apache-2.0
/*
 * Numbers for items (slots.h).
 */
#include "common/slots.h"

#include "common/heap.h"

#include <errno.h>

enum { FIRST_SLOTS = 16 };

int slots_reserve(struct slots *all, uint32_t max)
{
    assert(max >= FIRST_SLOTS && (max & (max - 1)) == 0);
    if (all->first_free)
        return 0;
    uint32_t n = all->n ? all->n * 2 : FIRST_SLOTS;
    if (n > max)
        return -EAGAIN;
    struct slot *items = heap_grow(all->items, all->n * sizeof(*items), n * sizeof(*items));
    if (!items)
        return -ENOMEM;
    for (uint32_t i = n; i-- > all->n;) {
        items[i].next_free = all->first_free;
        all->first_free = i + 1;
    }
    all->items = items;
    all->n = n;
    return 0;
}

uint64_t slots_add(struct slots *all, void *item, uint32_t *ret_index)
{
    assert(item && all->first_free && all->first_free <= all->n);
    *ret_index = all->first_free - 1;
    struct slot *slot = &all->items[*ret_index];
    all->first_free = slot->next_free;
    slot->item = item;
    slot->uses++;
    return (uint64_t)slot->uses << 32 | (*ret_index + 1);
}

void slots_remove(struct slots *all, uint32_t index)
{
    assert(index < all->n && all->items[index].item);
    all->items[index].item = NULL;
    all->items[index].next_free = all->first_free;
    all->first_free = index + 1;
}

void *slots_get(const struct slots *all, uint32_t index)
{
    return index < all->n ? all->items[index].item : NULL;
}

void *slots_find(const struct slots *all, uint64_t number)
{
    uint32_t index = (uint32_t)number - 1;
    if (!number || index >= all->n || all->items[index].uses != number >> 32)
        return NULL;
    return all->items[index].item;
}

void slots_release(struct slots *all)
{
    heap_free(all->items, all->n * sizeof(*all->items));
    *all = (struct slots){0};
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Tables of items. A removed slot keeps a mark, because searches pass over it; it is used again by an item whose search
 * ends after it. Every table has an empty slot, so that each search ends.
 */
#include "store.h"

#include <monkey/base/arena.h>

#include <assert.h>
#include <string.h>

enum { EMPTY = 0, REMOVED = 1, TAG_SHIFT = 48 };

static_assert(sizeof(uintptr_t) == 8, "a slot holds an address of 48 bits and 16 bits of the hash");

/* Returns bits of the hash that neither choose the shard nor the slot; never 0, so that no mark looks like an item. */
static uintptr_t make_tag(uint64_t hash)
{
    return (uintptr_t)(hash >> 36 | 1) << TAG_SHIFT;
}

static uintptr_t make_slot(const struct mk_item *item)
{
    return (uintptr_t)item | make_tag(item->hash);
}

struct mk_item *mk__table_item(uintptr_t slot)
{
    return slot >> TAG_SHIFT ? (struct mk_item *)(slot << (64 - TAG_SHIFT) >> (64 - TAG_SHIFT)) : NULL;
}

static size_t count_bytes(uint32_t slots)
{
    return sizeof(struct mk__table) + slots * sizeof(uintptr_t);
}

struct mk__table *mk__table_new(struct mk__budget *budget, uint32_t slots)
{
    size_t bytes = count_bytes(slots);
    if (!mk__budget_take(budget, bytes, 0))
        return NULL;
    struct mk__table *t = mk_account_alloc(NULL, bytes);
    if (!t) {
        mk__budget_give(budget, bytes);
        return NULL;
    }
    atomic_fetch_add_explicit(&budget->table_bytes, bytes, memory_order_relaxed);
    memset((void *)t, 0, bytes);
    t->budget = budget;
    t->mask = slots - 1;
    return t;
}

void mk__table_free(struct mk_retired *retired)
{
    struct mk__table *t = MK_CONTAINER_OF(retired, struct mk__table, retired);
    size_t bytes = count_bytes(t->mask + 1);
    atomic_fetch_sub_explicit(&t->budget->table_bytes, bytes, memory_order_relaxed);
    mk__budget_give(t->budget, bytes);
    mk_account_free(NULL, t, bytes);
}

static uint32_t get_home(const struct mk__table *t, uint64_t hash)
{
    return (uint32_t)hash & t->mask;
}

struct mk_item *mk__table_find(struct mk__table *t, uint64_t hash, const void *key, size_t len)
{
    uintptr_t tag = make_tag(hash);
    for (uint32_t i = get_home(t, hash);; i = (i + 1) & t->mask) {
        uintptr_t slot = atomic_load_explicit(&t->slots[i], memory_order_acquire);
        if (slot == EMPTY)
            return NULL;
        if ((slot ^ tag) >> TAG_SHIFT)
            continue;
        struct mk_item *item = mk__table_item(slot);
        if (item->hash == hash && item->key_bytes == len && memcmp(mk_item_key(item), key, len) == 0)
            return item;
    }
}

_Atomic uintptr_t *mk__table_slot_of(struct mk__table *t, const struct mk_item *item)
{
    for (uint32_t i = get_home(t, item->hash);; i = (i + 1) & t->mask) {
        uintptr_t slot = atomic_load_explicit(&t->slots[i], memory_order_relaxed);
        if (slot == make_slot(item))
            return &t->slots[i];
        if (slot == EMPTY)
            return NULL;
    }
}

void mk__table_replace(_Atomic uintptr_t *slot, struct mk_item *item)
{
    atomic_store_explicit(slot, make_slot(item), memory_order_release);
}

void mk__table_remove(struct mk__table *t, _Atomic uintptr_t *slot)
{
    uint32_t i = (uint32_t)(slot - t->slots);
    t->items--;
    if (atomic_load_explicit(&t->slots[(i + 1) & t->mask], memory_order_relaxed) != EMPTY) {
        atomic_store_explicit(slot, REMOVED, memory_order_relaxed);
        return;
    }
    /* No search continues after this slot: it and the marks before it are empty from now on. */
    do {
        atomic_store_explicit(&t->slots[i], EMPTY, memory_order_relaxed);
        t->full--;
        i = (i - 1) & t->mask;
    } while (atomic_load_explicit(&t->slots[i], memory_order_relaxed) == REMOVED);
}

struct mk_item *mk__table_add(struct mk__table *t, struct mk_item *item)
{
    struct mk_item *displaced = NULL;
    uint32_t i = get_home(t, item->hash);
    uintptr_t slot;
    while ((slot = atomic_load_explicit(&t->slots[i], memory_order_relaxed)) != EMPTY && slot != REMOVED)
        i = (i + 1) & t->mask;
    if (slot == EMPTY && t->full == t->mask) {
        /* The last empty slot: make another one. Before an empty slot there is no mark, so that this is an item. */
        uint32_t before = (i - 1) & t->mask;
        displaced = mk__table_item(atomic_load_explicit(&t->slots[before], memory_order_relaxed));
        mk__table_remove(t, &t->slots[before]);
        i = before == get_home(t, item->hash) || i != get_home(t, item->hash) ? before : i;
    }
    t->items++;
    t->full += slot == EMPTY;
    mk__table_replace(&t->slots[i], item);
    return displaced;
}

bool mk__table_is_full(const struct mk__table *t)
{
    return t->full >= t->mask - t->mask / 4;
}

struct mk__table *mk__table_rebuild(struct mk__table *t)
{
    uint32_t slots = MK__TABLE_SLOTS_MIN;
    while (t->items > slots / 8 * 5)
        slots *= 2;
    struct mk__table *fresh = mk__table_new(t->budget, slots);
    if (!fresh)
        return NULL;
    for (uint32_t i = 0; i <= t->mask; i++) {
        struct mk_item *item = mk__table_item(atomic_load_explicit(&t->slots[i], memory_order_relaxed));
        if (item)
            mk__table_add(fresh, item);
    }
    return fresh;
}

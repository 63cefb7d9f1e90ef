// SPDX-License-Identifier: Apache-2.0
/*
 * The hash table of a shard: open addressing with linear probing. A slot is the address of an item and 16 bits of its
 * hash, so that a lookup touches no other item.
 *
 * Readers take no lock. Writers hold the lock of the shard, and replace a table that is too small or too full of
 * removed slots by a new one; the old one is retired.
 */
#ifndef MK_STORE_TABLE_H
#define MK_STORE_TABLE_H

#include <monkey/base/epoch.h>
#include <monkey/kit/store.h>

#include <stdatomic.h>
#include <stdbool.h>

#include "pages.h"

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

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * A table whose items have numbers, which services hold instead of pointers: the number of an item that is gone means
 * nothing, even if its slot is used again.
 *
 *     number = uses of the slot << 32 | slot + 1
 */
#ifndef DUDA_CORE_COMMON_SLOTS_H
#define DUDA_CORE_COMMON_SLOTS_H

#include <stdint.h>

struct slot {
    void *item; /* NULL: the slot is free */
    uint32_t uses;
    uint32_t next_free; /* index + 1; 0: the last one */
};

/* Zeroed: empty. */
struct slots {
    struct slot *items;
    uint32_t n;
    uint32_t first_free; /* index + 1 */
};

/* Makes room for one more item. Returns 0, -EAGAIN (there are `max`, a power of two from 16 on) or -ENOMEM. */
int slots_reserve(struct slots *all, uint32_t max);
/* Adds an item after slots_reserve(). Returns its number; *ret_index is that of its slot. */
uint64_t slots_add(struct slots *all, void *item, uint32_t *ret_index);
/* Frees the slot. */
void slots_remove(struct slots *all, uint32_t index);
/* Returns the item of a number, or NULL. */
void *slots_find(const struct slots *all, uint64_t number);
/* Returns the item of a slot, or NULL; any index. */
void *slots_get(const struct slots *all, uint32_t index);
/* Frees the table; its items are the caller's. */
void slots_release(struct slots *all);

#endif

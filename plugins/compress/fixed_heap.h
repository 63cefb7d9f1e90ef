// SPDX-License-Identifier: Apache-2.0
/*
 * A heap within one piece of memory: first fit, and what is given back joins its neighbours. For a library with few
 * allocations that must not be refused.
 */
#ifndef COMPRESS_FIXED_HEAP_H
#define COMPRESS_FIXED_HEAP_H

#include <stdbool.h>
#include <stddef.h>

struct fixed_heap_block;

struct fixed_heap {
    struct fixed_heap_block *first;
    size_t size;
    size_t used_max; /* the end of the farthest block that there ever was */
};

/* `memory`: aligned to 16, and stays the caller's; `size` a multiple of 16. */
void fixed_heap_init(struct fixed_heap *heap, void *memory, size_t size);

/* Aligned to 16; NULL when there is no room in one place. */
void *fixed_heap_alloc(struct fixed_heap *heap, size_t size);
/* False when it does not come from this heap. */
bool fixed_heap_free(struct fixed_heap *heap, void *ptr);

#endif

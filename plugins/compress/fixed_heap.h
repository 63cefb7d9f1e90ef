// SPDX-License-Identifier: Apache-2.0
/*
 * A heap within one piece of memory: first fit; free neighbours are merged. For a library with few allocations that
 * must not fail.
 */
#ifndef COMPRESS_FIXED_HEAP_H
#define COMPRESS_FIXED_HEAP_H

#include <stdbool.h>
#include <stddef.h>

struct fixed_heap_block;

struct fixed_heap {
    struct fixed_heap_block *first;
    size_t size;
    size_t used_max; /* the end of the last block that was ever used */
};

/* Prepares a heap. `memory`: aligned to 16, remains the caller's; `size`: a multiple of 16. */
void fixed_heap_init(struct fixed_heap *heap, void *memory, size_t size);

/* Allocates, aligned to 16; NULL if no free block is large enough. */
void *fixed_heap_alloc(struct fixed_heap *heap, size_t size);
/* Frees. Returns false if `ptr` is not from this heap. */
bool fixed_heap_free(struct fixed_heap *heap, void *ptr);

#endif

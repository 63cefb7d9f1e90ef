// SPDX-License-Identifier: Apache-2.0
/*
 * The heap of fixed_heap.h: adjacent blocks, each with a header.
 */
#include "fixed_heap.h"

#include <assert.h>
#include <stdint.h>

struct fixed_heap_block {
    size_t size; /* without this header */
    bool used;
    _Alignas(16) char bytes[];
};

void fixed_heap_init(struct fixed_heap *heap, void *memory, size_t size)
{
    assert((uintptr_t)memory % 16 == 0 && size % 16 == 0 && size > sizeof(struct fixed_heap_block));
    *heap = (struct fixed_heap){.first = memory, .size = size};
    *heap->first = (struct fixed_heap_block){.size = size - sizeof(struct fixed_heap_block)};
}

/* Returns the next block; NULL after the last one. */
static struct fixed_heap_block *next_block(const struct fixed_heap *heap, struct fixed_heap_block *b)
{
    char *next = b->bytes + b->size;
    return next < (char *)heap->first + heap->size ? (struct fixed_heap_block *)next : NULL;
}

static void merge_free_blocks(const struct fixed_heap *heap, struct fixed_heap_block *b)
{
    struct fixed_heap_block *next;
    while (!b->used && (next = next_block(heap, b)) && !next->used)
        b->size += sizeof(*next) + next->size;
}

static void split_block(struct fixed_heap_block *b, size_t size)
{
    assert(b->size >= size && !b->used);
    if (b->size - size < sizeof(*b) * 2)
        return;
    struct fixed_heap_block *rest = (struct fixed_heap_block *)(b->bytes + size);
    *rest = (struct fixed_heap_block){.size = b->size - size - sizeof(*rest)};
    b->size = size;
}

void *fixed_heap_alloc(struct fixed_heap *heap, size_t size)
{
    if (size > heap->size)
        return NULL;
    size = (size + 15) & ~(size_t)15;
    for (struct fixed_heap_block *b = heap->first; b; b = next_block(heap, b)) {
        merge_free_blocks(heap, b);
        if (b->used || b->size < size)
            continue;
        split_block(b, size);
        b->used = true;
        size_t end = (size_t)(b->bytes + b->size - (char *)heap->first);
        heap->used_max = end > heap->used_max ? end : heap->used_max;
        return b->bytes;
    }
    return NULL;
}

bool fixed_heap_free(struct fixed_heap *heap, void *ptr)
{
    uintptr_t at = (uintptr_t)ptr, first = (uintptr_t)heap->first;
    if (at < first || at >= first + heap->size)
        return false;
    struct fixed_heap_block *b = (struct fixed_heap_block *)((char *)ptr - offsetof(struct fixed_heap_block, bytes));
    assert(b->used);
    b->used = false;
    return true;
}

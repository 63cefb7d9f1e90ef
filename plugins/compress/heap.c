// SPDX-License-Identifier: Apache-2.0
/*
 * The heap of heap.h: its blocks lie one behind the other, each behind a header.
 */
#include "heap.h"

#include <stdint.h>

struct heap_block {
    size_t size; /* without this header */
    bool used;
    _Alignas(16) char bytes[];
};

void heap_init(struct heap *heap, void *memory, size_t size)
{
    *heap = (struct heap){.first = memory, .size = size};
    *heap->first = (struct heap_block){.size = size - sizeof(struct heap_block)};
}

/* NULL behind the last one. */
static struct heap_block *next_of(const struct heap *heap, struct heap_block *b)
{
    char *next = b->bytes + b->size;
    return next < (char *)heap->first + heap->size ? (struct heap_block *)next : NULL;
}

static void join(const struct heap *heap, struct heap_block *b)
{
    struct heap_block *next;
    while (!b->used && (next = next_of(heap, b)) && !next->used)
        b->size += sizeof(*next) + next->size;
}

static void split(struct heap_block *b, size_t size)
{
    if (b->size - size < sizeof(*b) * 2)
        return;
    struct heap_block *rest = (struct heap_block *)(b->bytes + size);
    *rest = (struct heap_block){.size = b->size - size - sizeof(*rest)};
    b->size = size;
}

void *heap_take(struct heap *heap, size_t size)
{
    if (size > heap->size)
        return NULL;
    size = (size + 15) & ~(size_t)15;
    for (struct heap_block *b = heap->first; b; b = next_of(heap, b)) {
        join(heap, b);
        if (b->used || b->size < size)
            continue;
        split(b, size);
        b->used = true;
        size_t end = (size_t)(b->bytes + b->size - (char *)heap->first);
        heap->used_max = end > heap->used_max ? end : heap->used_max;
        return b->bytes;
    }
    return NULL;
}

bool heap_give_back(struct heap *heap, void *taken)
{
    uintptr_t at = (uintptr_t)taken, first = (uintptr_t)heap->first;
    if (at < first || at >= first + heap->size)
        return false;
    struct heap_block *b = (struct heap_block *)((char *)taken - offsetof(struct heap_block, bytes));
    b->used = false;
    return true;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Memory that is freed with an arena (heap.h).
 */
#include "common/heap.h"

#include <stddef.h>

struct heap_block {
    struct mk_account *account;
    size_t size; /* with this struct */
    _Alignas(max_align_t) char bytes[];
};

static void free_block(void *ctx)
{
    struct heap_block *block = ctx;
    mk_account_free(block->account, block, block->size);
}

void *heap_alloc_until(struct mk_arena *arena, size_t size)
{
    size += sizeof(struct heap_block);
    struct heap_block *block = mk_account_alloc(arena->account, size);
    if (!block)
        return NULL;
    *block = (struct heap_block){.account = arena->account, .size = size};
    if (mk_arena_defer(arena, free_block, block) < 0) {
        free_block(block);
        return NULL;
    }
    return block->bytes;
}

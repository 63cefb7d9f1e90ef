// SPDX-License-Identifier: Apache-2.0
/*
 * Recycles objects of one size. Blocks of them are allocated from the account and freed when the pool is released, so
 * the pools of a worker keep the size that its busiest moment needed. For one thread.
 */
#ifndef MK_BASE_POOL_H
#define MK_BASE_POOL_H

#include <monkey/base/arena.h>

struct mk__pool {
    struct mk_account *account;
    void *free_list;
    void *blocks;
    uint32_t object_bytes, block_objects;
    uint32_t used;
};

/* Initializes an empty pool, which allocates `block_objects` objects at a time. */
void mk__pool_init(struct mk__pool *p, struct mk_account *account, size_t object_bytes, unsigned block_objects);
/* Frees the blocks. All objects must have been put back. */
void mk__pool_release(struct mk__pool *p);

/* Returns an object with undefined content, aligned to 16 bytes, or NULL if the account or the heap is exhausted. */
void *mk__pool_get(struct mk__pool *p);
/* Puts an object back for the next mk__pool_get(). */
void mk__pool_put(struct mk__pool *p, void *object);

#endif

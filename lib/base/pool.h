// SPDX-License-Identifier: Apache-2.0
/*
 * Objects of one size, recycled. Blocks of them come from the account and go back when the pool is
 * released; a worker's pools are as large as its busiest moment. One thread.
 */
#ifndef MK_BASE_POOL_H
#define MK_BASE_POOL_H

#include <monkey/arena.h>

struct mk__pool {
    struct mk_account *account;
    void *free_list;
    void *blocks;
    uint32_t object_bytes, block_objects;
    uint32_t used;
};

/* `block_objects` are allocated at a time. */
void mk__pool_init(struct mk__pool *p, struct mk_account *account, size_t object_bytes, unsigned block_objects);
void mk__pool_release(struct mk__pool *p);

/* An object with undefined content, aligned to 16; NULL when the account is exhausted. */
void *mk__pool_get(struct mk__pool *p);
void mk__pool_put(struct mk__pool *p, void *object);

#endif

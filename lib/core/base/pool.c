// SPDX-License-Identifier: Apache-2.0
/*
 * The pool of base/pool.h: a list of blocks, and a list of free objects in them. With AddressSanitizer or
 * MemorySanitizer each object is a separate allocation, so that a use after free is found.
 */
#include "base/pool.h"

#include "base/asan.h"

#include <assert.h>
#include <errno.h>

struct pool_block {
    struct pool_block *next;
    size_t bytes;
};

static_assert(sizeof(struct pool_block) == 16, "objects stay aligned behind the head of a block");

void mk__pool_init(struct mk__pool *p, struct mk_account *account, size_t object_bytes, unsigned block_objects)
{
    assert(object_bytes && block_objects);
    *p = (struct mk__pool){
        .account = account,
        .object_bytes = (uint32_t)((object_bytes + 15) & ~(size_t)15),
        .block_objects = block_objects,
    };
}

void mk__pool_release(struct mk__pool *p)
{
    assert(p->used == 0);
    for (struct pool_block *b = p->blocks, *next; b; b = next) {
        next = b->next;
        mk_account_free(p->account, b, b->bytes);
    }
    p->blocks = p->free_list = NULL;
}

static int add_block(struct mk__pool *p)
{
    size_t bytes = sizeof(struct pool_block) + (size_t)p->object_bytes * p->block_objects;
    struct pool_block *b = mk_account_alloc(p->account, bytes);
    if (!b)
        return -ENOMEM;
    *b = (struct pool_block){.next = p->blocks, .bytes = bytes};
    p->blocks = b;
    char *object = (char *)(b + 1);
    for (unsigned i = 0; i < p->block_objects; i++, object += p->object_bytes) {
        *(void **)object = p->free_list;
        p->free_list = object;
    }
    return 0;
}

MK_HOT void *mk__pool_get(struct mk__pool *p)
{
    void *object;
    if (MK__POOL_IS_MALLOC) {
        object = mk_account_alloc(p->account, p->object_bytes);
    } else {
        if (!p->free_list && add_block(p) < 0)
            return NULL;
        object = p->free_list;
        p->free_list = *(void **)object;
    }
    if (object)
        p->used++;
    return object;
}

void mk__pool_put(struct mk__pool *p, void *object)
{
    assert(object && p->used);
    p->used--;
    if (MK__POOL_IS_MALLOC) {
        mk_account_free(p->account, object, p->object_bytes);
        return;
    }
    *(void **)object = p->free_list;
    p->free_list = object;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * The object `gc`. The items are in the request's arena, but not among its clean-ups: they must outlive the request's
 * last callback.
 */
#include "gc.h"

#include "mem.h"
#include "objects.h"
#include "request.h"

struct gc_item {
    struct gc_item *next;
    void *ptr;
    void (*destroy)(void *ptr);
};

void gc_release(struct gc_item **first)
{
    while (*first) {
        struct gc_item *item = *first;
        *first = item->next;
        item->destroy(item->ptr);
    }
}

static int add_destroy(duda_request_t *dr, void *ptr, void (*destroy)(void *ptr))
{
    if (request_check(dr, "gc->add_destroy()") < 0)
        return -1;
    if (!ptr)
        return 0;
    struct gc_item *item = destroy ? mk_arena_alloc(mk_request_arena(dr->req), sizeof(*item)) : NULL;
    if (!item)
        return -1;
    *item = (struct gc_item){dr->gc, ptr, destroy};
    dr->gc = item;
    return 0;
}

static int add(duda_request_t *dr, void *ptr)
{
    return add_destroy(dr, ptr, mem_free);
}

const struct duda_api_gc object_gc = {
    .add = add,
    .add_destroy = add_destroy,
};

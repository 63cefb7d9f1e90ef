// SPDX-License-Identifier: Apache-2.0
/*
 * The object `gc`. The first items are in the request's arena, but not among its clean-ups: they must outlive the
 * request's last callback. Further ones are on the heap, because the arena is small.
 */
#include "request/gc.h"

#include "common/current.h"
#include "common/heap.h"
#include "common/mem.h"
#include "common/api_error.h"
#include "objects.h"
#include "request/request.h"

enum { ARENA_ITEMS = 64, SEARCHED_ITEMS = 256 };

struct gc_item {
    struct gc_item *next; /* the one that was added before */
    unsigned n;           /* of those that were added before */
    void *ptr;
    void (*destroy)(void *ptr);
};

void gc_release(struct duda_request *dr)
{
    struct current outer = request_enter(dr);
    current.explanation = "it was freed at the end of a request, because of gc->add() or gc->add_destroy(): the "
                          "service must not free it, too";
    while (dr->gc) {
        struct gc_item *item = dr->gc;
        assert(item->destroy && (!item->next || item->next->n < item->n));
        dr->gc = item->next;
        item->destroy(item->ptr);
        if (item->n >= ARENA_ITEMS)
            heap_free(item, sizeof(*item));
    }
    current_leave(outer);
}

static struct gc_item *new_item(duda_request_t *dr)
{
    struct gc_item *item;
    unsigned n = dr->gc ? dr->gc->n + 1 : 0;
    if (n < ARENA_ITEMS)
        item = mk_arena_alloc(mk_request_arena(dr->req), sizeof(*item));
    else
        item = heap_zalloc(sizeof(*item));
    if (item)
        *item = (struct gc_item){.next = dr->gc, .n = n};
    return item;
}

static int add_item(duda_request_t *dr, void *ptr, void (*destroy)(void *ptr))
{
    if (!ptr)
        return 0;
    struct gc_item *item = destroy ? new_item(dr) : NULL;
    if (!item)
        return -1;
    item->ptr = ptr;
    item->destroy = destroy;
    dr->gc = item;
    request_use(dr, FEATURE_GC);
    return 0;
}

REQUEST_CALL(int add_destroy(duda_request_t *dr, void *ptr, void (*destroy)(void *ptr)), request_check,
             "gc->add_destroy()", -1, add_item(dr, ptr, destroy))

/* Returns whether free() will be called for a pointer, of the items that were added last. */
static bool has_item(const duda_request_t *dr, const void *ptr)
{
    const struct gc_item *item = dr->gc;
    for (unsigned i = 0; item && i < SEARCHED_ITEMS; i++, item = item->next)
        if (item->ptr == ptr && item->destroy == mem_free)
            return true;
    return false;
}

/* Returns whether it is one of the service's pointers to objects. */
static bool is_object(const struct duda_service_info *info, const void *ptr)
{
    const struct duda_object_row *row = info->begin;
    while (row < info->end && (row->size == 0 || *(void *const *)row->pointer != ptr))
        row++;
    return row < info->end;
}

static int add_pointer(duda_request_t *dr, void *ptr)
{
    static const char call[] = "gc->add()";
    if (request_check(dr, call) < 0)
        return -1;
    if (ptr && is_object(dr->worker->service->info, ptr))
        return request_refuse(dr, call, -1, "the pointer is an object of the API; it is not freed");
    if (ptr && has_item(dr, ptr))
        return request_refuse(dr, call, 0, "the pointer was added before; it is freed once");
    return add_item(dr, ptr, mem_free);
}

const struct duda_api_gc object_gc = {
    .add = add_pointer,
    .add_destroy = add_destroy,
};

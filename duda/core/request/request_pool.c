// SPDX-License-Identifier: Apache-2.0
/*
 * The memory of requests: slabs of one worker of a service, which are kept until the worker ends. So an access to a
 * request that has ended meets memory of a request, never of something else: `req` is NULL, until the place is used
 * again, which other places of the slab are before. With AddressSanitizer such an access is reported.
 *
 *     slabs ─► with free places ... ─► full ...
 */
#include "common/heap.h"
#include "request/request.h"
#include "service/counts.h"

enum { SLAB_REQUESTS = 8 };

static const uint32_t SLAB_FULL = (UINT32_C(1) << SLAB_REQUESTS) - 1;

struct request_slab {
    struct mk_list node; /* in request_slabs.list */
    uint32_t used;       /* a bit for each place */
    unsigned next;       /* where the search begins */
    struct duda_request items[SLAB_REQUESTS];
};

static_assert(SLAB_REQUESTS < 32, "`used` has a bit for each place");

/* As <sanitizer/asan_interface.h> declares them. */
void __asan_poison_memory_region(const volatile void *p, size_t size);
void __asan_unpoison_memory_region(const volatile void *p, size_t size);

static void poison_memory(const void *p, size_t size)
{
    if (MK_HAS_ASAN)
        __asan_poison_memory_region(p, size);
}

static void unpoison_memory(const void *p, size_t size)
{
    if (MK_HAS_ASAN)
        __asan_unpoison_memory_region(p, size);
}

static struct request_slab *to_slab(struct mk_list *node)
{
    return MK_CONTAINER_OF(node, struct request_slab, node);
}

static void add_first(struct mk_list *list, struct mk_list *node)
{
    mk_list_add(list->next, node); /* before the first, or, in an empty list, before the list itself */
}

static struct request_slab *add_slab(struct service_worker *w)
{
    struct request_slab *slab = heap_zalloc(sizeof(*slab));
    if (!slab)
        return NULL;
    mk_counter_add(counts_of(w->service)->request_memory, NULL, sizeof(*slab));
    poison_memory(slab->items, sizeof(slab->items));
    add_first(&request_slabs_of(w)->list, &slab->node);
    return slab;
}

static struct request_slab *find_slab(struct service_worker *w)
{
    if (!mk_list_empty(&request_slabs_of(w)->list) && to_slab(request_slabs_of(w)->list.next)->used != SLAB_FULL)
        return to_slab(request_slabs_of(w)->list.next);
    return add_slab(w);
}

int request_pool_init(struct service_worker *w)
{
    mk_list_init(&request_slabs_of(w)->list);
    return 0;
}

struct duda_request *request_pool_get(struct service_worker *w)
{
    struct request_slab *slab = find_slab(w);
    if (!slab)
        return NULL;
    while (slab->used & UINT32_C(1) << slab->next)
        slab->next = (slab->next + 1) % SLAB_REQUESTS;
    struct duda_request *dr = &slab->items[slab->next];
    assert(slab->used != SLAB_FULL);
    slab->used |= UINT32_C(1) << slab->next;
    slab->next = (slab->next + 1) % SLAB_REQUESTS;
    if (slab->used == SLAB_FULL) {
        mk_list_del(&slab->node);
        mk_list_add(&request_slabs_of(w)->list, &slab->node);
    }
    unpoison_memory(dr, sizeof(*dr));
    *dr = (struct duda_request){.worker = w, .slab = slab};
    return dr;
}

void request_pool_put(struct duda_request *dr)
{
    struct request_slab *slab = dr->slab;
    struct service_worker *w = dr->worker;
    assert(dr >= slab->items && dr < slab->items + SLAB_REQUESTS);
    assert(slab->used & UINT32_C(1) << (dr - slab->items));
    if (slab->used == SLAB_FULL) {
        mk_list_del(&slab->node);
        add_first(&request_slabs_of(w)->list, &slab->node);
    }
    slab->used &= ~(UINT32_C(1) << (dr - slab->items));
    dr->req = NULL;
    poison_memory(dr, sizeof(*dr));
}

bool request_pool_has(const struct service_worker *w, const struct duda_request *dr)
{
    for (struct mk_list *n = request_slabs_of(w)->list.next; n != &request_slabs_of(w)->list; n = n->next) {
        const struct request_slab *slab = to_slab(n);
        uintptr_t at = (uintptr_t)dr - (uintptr_t)slab->items;
        if (at < sizeof(slab->items))
            return at % sizeof(*dr) == 0 && slab->used & UINT32_C(1) << at / sizeof(*dr);
    }
    return false;
}

void request_pool_release(struct service_worker *w)
{
    while (!mk_list_empty(&request_slabs_of(w)->list)) {
        struct request_slab *slab = to_slab(request_slabs_of(w)->list.next);
        assert(slab->used == 0);
        mk_list_del(&slab->node);
        unpoison_memory(slab->items, sizeof(slab->items));
        heap_free(slab, sizeof(*slab));
        mk_counter_add(counts_of(w->service)->request_memory, NULL, -(int64_t)sizeof(*slab));
    }
}

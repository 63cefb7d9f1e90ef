// SPDX-License-Identifier: Apache-2.0
/*
 * Requests of services (request.h), and the object `request`.
 */
#include "request.h"

#include "current.h"
#include "gc.h"
#include "objects.h"

void request_call(struct duda_request *dr, duda_request_fn fn)
{
    struct current outer = current_enter(dr->worker->service, dr->worker);
    atomic_store_explicit(&dr->worker->watch.function, (uintptr_t)fn, memory_order_relaxed);
    fn(dr);
    current_leave(outer);
}

static void end_request(void *ctx)
{
    struct duda_request *dr = ctx;
    mk_list_del(&dr->node);
    if (dr->done)
        request_call(dr, dr->done);
    struct current outer = current_enter(dr->worker->service, dr->worker);
    gc_release(&dr->gc);
    current_leave(outer);
}

struct duda_request *request_new(struct mk_request *req, struct service_worker *worker)
{
    struct mk_arena *arena = mk_request_arena(req);
    struct duda_request *dr = mk_arena_zalloc(arena, sizeof(*dr));
    if (!dr || mk_arena_defer(arena, end_request, dr) < 0)
        return NULL;
    dr->req = req;
    dr->worker = worker;
    mk_list_add(&worker->requests, &dr->node);
    return dr;
}

static const char *get_path(duda_request_t *dr)
{
    return mk_request_path(dr->req).p;
}

static const char *get_method(duda_request_t *dr)
{
    return mk_arena_dup(mk_request_arena(dr->req), mk_request_method_name(dr->req)).p;
}

const struct duda_api_request object_request = {
    .method = get_method,
    .path = get_path,
};

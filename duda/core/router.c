// SPDX-License-Identifier: Apache-2.0
/*
 * The routes of a service (router.h), and the object `router`.
 */
#include "router.h"

#include "current.h"
#include "objects.h"
#include "service.h"

struct duda_route {
    struct duda_route *next;
    struct mk_str pattern;
    duda_request_fn handler;
};

struct router {
    struct mk_arena *arena;
    struct duda_route *first;
};

struct router *router_new(struct mk_arena *arena)
{
    struct router *router = mk_arena_zalloc(arena, sizeof(*router));
    if (router)
        router->arena = arena;
    return router;
}

duda_request_fn router_find(const struct router *router, enum mk_method method, struct mk_str path)
{
    if (method != MK_GET)
        return NULL;
    for (const struct duda_route *r = router->first; r; r = r->next) {
        if (mk_str_eq(r->pattern, path))
            return r->handler;
    }
    return NULL;
}

static struct duda_route *add_get(const char *pattern, duda_request_fn handler)
{
    struct router *router = current.service->router;
    struct duda_route *r = mk_arena_zalloc(router->arena, sizeof(*r));
    if (!r)
        return NULL;
    *r = (struct duda_route){router->first, mk_arena_dup(router->arena, mk_str_c(pattern)), handler};
    router->first = r;
    return r;
}

const struct duda_api_router object_router = {
    .get = add_get,
};

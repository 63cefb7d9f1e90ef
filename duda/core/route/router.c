// SPDX-License-Identifier: Apache-2.0
/*
 * The routes of a service (router.h).
 */
#include "route/router.h"

#include "common/current.h"
#include "common/phase.h"
#include "route/dispatch.h"

#include <errno.h>
#include <stdio.h>

struct router *router_new(struct mk_arena *arena)
{
    struct router *router = mk_arena_zalloc(arena, sizeof(*router));
    if (router)
        router->arena = arena;
    return router;
}

/* ── groups ── */

/* Puts copies of the callbacks of a group before those of a route. Returns 0 or -ENOMEM. */
static int prepend_hooks(struct mk_arena *arena, struct route_hook **list, const struct route_hook *hooks)
{
    for (; hooks; hooks = hooks->next) {
        struct route_hook *copy = mk_arena_alloc(arena, sizeof(*copy));
        if (!copy)
            return -ENOMEM;
        *copy = *hooks;
        copy->next = *list;
        *list = copy;
        list = &copy->next;
    }
    return 0;
}

/* Gives a route what its groups have, from the inner one to the outer one. Returns 0 or -ENOMEM. */
static int inherit_groups(struct mk_arena *arena, struct duda_route *r)
{
    int err = 0;
    for (const struct duda_route *g = r->group; g && err == 0; g = g->group) {
        r->body_bytes_max = r->body_bytes_max ? r->body_bytes_max : g->body_bytes_max;
        r->timeout_ms = r->timeout_ms ? r->timeout_ms : g->timeout_ms;
        r->stream_body |= g->stream_body;
        r->in_dthread |= g->in_dthread;
        err = prepend_hooks(arena, &r->before, g->before);
        if (err == 0)
            err = prepend_hooks(arena, &r->after, g->after);
    }
    return err;
}

int router_complete(struct router *router, struct mk_buf *error)
{
    int err = router->map.problem ? -EINVAL : 0;
    for (struct mk_route *r = router->routes.first; r && err == 0; r = r->next)
        err = inherit_groups(router->arena, MK_CONTAINER_OF(r, struct duda_route, at));
    if (err < 0)
        mk_buf_addf(error, "%s", err == -EINVAL ? router->map.problem : strerror(-err));
    return err;
}

enum router_result router_match(const struct router *router, enum mk_method method, struct mk_str path, bool has_query,
                                struct mk_route_match *match)
{
    static const enum router_result old_results[] = {
        [MAP_FOUND] = ROUTER_FOUND, [MAP_SLASH] = ROUTER_SLASH_OLD, [MAP_NOT_FOUND] = ROUTER_NOT_FOUND};
    if (mk_routes_match(&router->routes, method, path, match))
        return ROUTER_FOUND;
    if (match->has_slash_form)
        return ROUTER_SLASH;
    if (match->allow)
        return ROUTER_METHOD;
    return old_results[map_match(&router->map, path, has_query, match)];
}

/* ── the listing ── */

struct listing {
    router_list_fn fn;
    void *ctx;
};

static void list_old(struct duda_route *route, struct mk_str pattern, void *ctx)
{
    const struct listing *listing = ctx;
    listing->fn(route, MK_STR("ANY"), pattern, listing->ctx);
}

void router_list(struct router *router, router_list_fn fn, void *ctx)
{
    struct listing listing = {fn, ctx};
    for (struct mk_route *r = router->routes.first; r; r = r->next) {
        MK_BUF_ON_STACK(methods, 64);
        mk_routes_list_methods(&methods, r->methods);
        fn(MK_CONTAINER_OF(r, struct duda_route, at), mk_buf_str(&methods), r->pattern, ctx);
    }
    map_list(&router->map, list_old, &listing);
}

/* ── duda_main() ── */

struct router *router_of_main(const char *function)
{
    char call[64];
    snprintf(call, sizeof(call), "%s()", function);
    return phase_check(PHASE_MAIN, call) ? current.service->router : NULL;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * The routes of a service (router.h).
 */
#include "route/router.h"

#include "common/api_error.h"
#include "common/current.h"
#include "compat/map.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

int router_init(struct service *s)
{
    router_of(s)->arena = &s->arena;
    return 0;
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

enum router_result router_match(const struct service *s, enum mk_method method, struct mk_str path, bool has_query,
                                struct mk_route_match *match)
{
    static const enum router_result old_results[] = {
        [MAP_FOUND] = ROUTER_FOUND, [MAP_SLASH] = ROUTER_SLASH_OLD, [MAP_NOT_FOUND] = ROUTER_NOT_FOUND};
    if (mk_routes_match(&router_of(s)->routes, method, path, match))
        return ROUTER_FOUND;
    if (match->has_slash_form)
        return ROUTER_SLASH;
    if (match->allow)
        return ROUTER_METHOD;
    return old_results[map_match(map_of(s), path, has_query, match)];
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

void router_list(const struct service *s, router_list_fn fn, void *ctx)
{
    struct listing listing = {fn, ctx};
    for (struct mk_route *r = router_of(s)->routes.first; r; r = r->next) {
        MK_BUF_ON_STACK(methods, 64);
        mk_routes_list_methods(&methods, r->methods);
        fn(MK_CONTAINER_OF(r, struct duda_route, at), mk_buf_str(&methods), r->pattern, ctx);
    }
    map_list(map_of(s), list_old, &listing);
}

/* ── the log ── */

struct log_listing {
    const struct service *service;
    unsigned n;
};

/* Returns the address of a function in its shared object; 0 if it is in none. */
static uintptr_t find_offset(duda_request_fn fn)
{
    Dl_info info;
    uintptr_t address = (uintptr_t)fn;
    return dladdr((const void *)address, &info) ? address - (uintptr_t)info.dli_fbase : 0;
}

static void log_route(struct duda_route *route, struct mk_str methods, struct mk_str pattern, void *ctx)
{
    struct log_listing *listing = ctx;
    listing->n++;
    mk_log_debug("service %s: route %.*s %.*s at 0x%" PRIxPTR, listing->service->self.name.data, MK_STR_ARG(methods),
                 MK_STR_ARG(pattern), find_offset(route->handler));
}

static void log_routes(const struct service *s)
{
    struct log_listing listing = {s, 0};
    router_list(s, log_route, &listing);
    mk_log_debug("service %s: %u routes", s->self.name.data, listing.n);
}

/* ── duda_main() ── */

int router_complete(struct service *s, struct mk_buf *error)
{
    struct router *router = router_of(s);
    int err = 0;
    for (struct mk_route *r = router->routes.first; r && err == 0; r = r->next)
        err = inherit_groups(router->arena, MK_CONTAINER_OF(r, struct duda_route, at));
    if (err < 0)
        mk_buf_addf(error, "%s", strerror(-err));
    else if (mk_log_wants(MK_LOG_DEBUG))
        log_routes(s);
    return err;
}

struct router *router_of_main(const char *function)
{
    char call[64];
    snprintf(call, sizeof(call), "%s()", function);
    return phase_check(PHASE_MAIN, call) ? router_of(current.service) : NULL;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * A route of a service: what a pattern (<monkey/kit/routes.h>) or a rule of the old API leads to.
 */
#ifndef DUDA_CORE_ROUTE_ROUTES_H
#define DUDA_CORE_ROUTE_ROUTES_H

#include <duda/router.h>
#include <monkey/kit/routes.h>

#include <stddef.h>

/* A callback before or after the handler. */
struct route_hook {
    struct route_hook *next;
    duda_before_fn before;
    duda_request_fn after;
};

/* A route, or a group of routes, which has no handler and whose pattern is their prefix. */
struct duda_route {
    struct mk_route at; /* pattern, methods and names */
    duda_request_fn handler;
    struct duda_route *group; /* to which it was added; NULL: none. router_complete() gives it what that has */
    struct route_hook *before, *after;
    size_t body_bytes_max; /* 0: MaxRequestSize */
    uint32_t timeout_ms;   /* 0: none but HandlerTimeout */
    bool stream_body, in_dthread;
    uint16_t row; /* its row in struct counts, from 1; 0: none */
};

/* Returns the route that contains `at`; NULL: none. */
static inline const struct duda_route *routes_get_owner(const struct mk_route *at)
{
    static_assert(offsetof(struct duda_route, at) == 0, "a route begins with its pattern");
    return (const struct duda_route *)(const void *)at;
}

#endif

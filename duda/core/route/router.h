// SPDX-License-Identifier: Apache-2.0
/*
 * The routes of a service. duda_main() adds them; then they are constant, and all workers read them. Those of the old
 * API are in compat/map.h, and are found after these.
 */
#ifndef DUDA_CORE_ROUTE_ROUTER_H
#define DUDA_CORE_ROUTE_ROUTER_H

#include "route/routes.h"
#include "service/service.h"

#include <monkey/base/buf.h>

struct router {
    struct mk_arena *arena;
    struct mk_routes routes;
    struct duda_route *group;          /* to which routes are added now; NULL: none */
    struct route_hook *before, *after; /* of all routes */
    bool has_after;                    /* of any route */
    duda_request_fn not_found;
    duda_error_fn error;
};

FEATURE_SLOT(router_of, struct router, service, FEATURE_ROUTER)

/* What becomes of a request. */
enum router_result {
    ROUTER_FOUND,
    ROUTER_SLASH,     /* redirect it to the path with a slash, by 301 or 308 */
    ROUTER_SLASH_OLD, /* by 301 to an absolute URL */
    ROUTER_METHOD,    /* there are routes for other methods */
    ROUTER_NOT_FOUND,
};

/* Hooks of features.c. */
int router_init(struct service *s);
/* Gives routes what their groups have, and logs them. Returns 0, or -ENOMEM with a sentence in `error`. */
int router_complete(struct service *s, struct mk_buf *error);

/*
 * Finds the route of a path below the service's URL: "", "/", "/a" ... `match->route` is set for ROUTER_FOUND only, and
 * `match->allow` for ROUTER_METHOD.
 */
enum router_result router_match(const struct service *s, enum mk_method method, struct mk_str path, bool has_query,
                                struct mk_route_match *match);

/*
 * Calls `fn` for each route in the order of registration: methods as "GET, POST" or "ANY", and the pattern. Both
 * strings are valid until `fn` returns. A route of several patterns comes several times (map_list()).
 */
typedef void (*router_list_fn)(struct duda_route *route, struct mk_str methods, struct mk_str pattern, void *ctx);
void router_list(const struct service *s, router_list_fn fn, void *ctx);

/* Returns the router of the service whose duda_main() calls `function`; NULL, which is logged, outside of it. */
struct router *router_of_main(const char *function);

#endif

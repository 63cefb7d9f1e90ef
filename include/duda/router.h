// SPDX-License-Identifier: Apache-2.0
/*
 * The object `router`: which function handles which requests.
 */
#ifndef DUDA_ROUTER_H
#define DUDA_ROUTER_H

#include "types.h"

struct duda_route;

struct duda_api_router {
    /*
     * Adds a route for one method. The pattern is relative to the service: "/users/:id", or "/files/" and "*rest".
     * Returns the route, or NULL, which is logged: the pattern is malformed or exists. Only in duda_main().
     */
    struct duda_route *(*get)(const char *pattern, duda_request_fn handler);
};

DUDA_OBJECT(struct duda_api_router, router)

#endif

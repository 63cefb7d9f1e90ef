// SPDX-License-Identifier: Apache-2.0
/*
 * The routes of the old API: interfaces with methods, and rules, of which the first that matches is used.
 */
#ifndef DUDA_CORE_COMPAT_MAP_H
#define DUDA_CORE_COMPAT_MAP_H

#include "route/routes.h"
#include "service/service.h"

#include <duda/map.h>

enum { MAP_PARAMS_MAX = 8 };

/* A static path, which is a prefix, or a pattern with ":name" segments, which more segments may follow. */
struct map_rule {
    struct map_rule *next;
    struct duda_route route;
    bool adds_slash; /* a static path that ends with a slash: without it a request is redirected */
};

struct map_methods {
    struct duda_method **items;
    uint32_t n;
};

struct map_interfaces {
    struct duda_interface **items;
    uint32_t n;
};

struct map {
    struct mk_arena *arena; /* of the service */
    struct duda_route root; /* without a handler: none */
    bool root_adds_slash;
    struct map_interfaces interfaces;
    struct map_rule *first, *last;
    bool force_redirect;
    const char *problem; /* a sentence, or NULL */
};

FEATURE_SLOT(map_of, struct map, service, FEATURE_MAP)

enum map_result { MAP_FOUND, MAP_SLASH, MAP_NOT_FOUND };

/* Finds the route of a path, for every method. `ret` is set for MAP_FOUND only. */
enum map_result map_match(const struct map *map, struct mk_str path, bool has_query, struct mk_route_match *ret);

/* Adds a rule of level 2. Returns 0, -EINVAL or -ENOMEM. */
int map_add_rule(struct map *map, struct mk_arena *arena, struct mk_str pattern, duda_request_fn fn);
/* Adds a static path of levels 0 and 1. Returns 0 or -ENOMEM. */
int map_add_static(struct map *map, struct mk_arena *arena, struct mk_str path, duda_request_fn fn);

/* Redirects requests for static paths that do not end with a slash and have no query: conf->force_redirect(). */
static inline void map_force_redirect(struct map *map)
{
    map->force_redirect = true;
}

/* Visits the root, interfaces' methods and rules in their order; a method of several interfaces several times. */
typedef void (*map_list_fn)(struct duda_route *route, struct mk_str pattern, void *ctx);
void map_list(struct map *map, map_list_fn fn, void *ctx);

/* Hooks of features.c. */
int map_init(struct service *s);
/* Returns 0, or -EINVAL with a sentence in `error`: what was added cannot work. */
int map_complete(struct service *s, struct mk_buf *error);

#endif

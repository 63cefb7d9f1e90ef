// SPDX-License-Identifier: Apache-2.0
/*
 * The routes of a service.
 */
#ifndef DUDA_CORE_ROUTER_H
#define DUDA_CORE_ROUTER_H

#include <duda/router.h>
#include <monkey/request.h>

struct router;

struct router *router_new(struct mk_arena *arena);

/* Returns the handler of a path below the service ("/" ...), or NULL. */
duda_request_fn router_find(const struct router *router, enum mk_method method, struct mk_str path);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * The original API: the objects `map`, `router`, `param`, `qs` and `cookie`, whose tables are in <duda/map.h> and
 * others.
 */
#ifndef DUDA_COMPAT_ROUTES_H
#define DUDA_COMPAT_ROUTES_H

#include "types.h"

/*
 * A parameter by its number (a new string for free()) or by its name (valid until the request ends), for services whose
 * level is not known: `which` is either.
 */
struct duda_old_param {
    char *(*get)(duda_request_t *dr, intptr_t which);
    int (*get_number)(duda_request_t *dr, intptr_t which, long *ret);
    short (*count)(duda_request_t *dr);
    short (*len)(duda_request_t *dr, intptr_t which);
};

#ifndef DUDA_FRAMEWORK

DUDA_OBJECT_AS(struct duda_api_map, map, "map")
DUDA_OBJECT_AS(struct duda_api_router_2, router, "router.2")
DUDA_OBJECT_AS(struct duda_api_qs_1, qs, "qs.1")
DUDA_OBJECT_AS(struct duda_api_cookie_1, cookie, "cookie.1")
#ifdef DUDA_OLD_ANY_LEVEL
DUDA_OBJECT_AS(struct duda_old_param, param, "param.any")
#elif DUDA_API_LEVEL == 2
DUDA_OBJECT_AS(struct duda_api_param_2, param, "param.2")
#else
DUDA_OBJECT_AS(struct duda_api_param_1, param, "param.1")
#endif
#if DUDA_API_LEVEL == 0
DUDA_OBJECT_AS(struct duda_api_param_1, params, "param.1") /* its name until the summer of 2012 */
#endif

#endif

#endif

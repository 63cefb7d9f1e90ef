// SPDX-License-Identifier: Apache-2.0
/*
 * The objects `map` and `router` of the original API, for services that were written for it; the header of that API
 * declares their pointers. New services use <duda/router.h>.
 *
 *     /service/interface/method/p1/p2      interfaces come first,
 *     /service/path...                     then static paths, which are prefixes, in the order of registration
 */
#ifndef DUDA_MAP_H
#define DUDA_MAP_H

#include "types.h"

typedef struct duda_interface duda_interface_t;
typedef struct duda_method duda_method_t;
typedef struct duda_param duda_param_t;

/* Levels 0 and 1; only in duda_main(). A name of a function that the service does not have is an error of its start. */
struct duda_api_map {
    /*
     * Add a static path to a function, by its name or by a pointer: for all paths that begin with it, and all methods.
     * The first that was added and matches is used. They return 0 or -1.
     */
    int (*static_add)(const char *path, const char *function_name);
    int (*static_add_ref)(const char *path, duda_request_fn fn);
    /* Sets the function for the URL of the service itself, with or without a slash. Returns 0 or -1. */
    int (*static_root)(const char *function_name);

    /* Make parts of a map. They return NULL without memory, or if they are called too late. */
    duda_interface_t *(*interface_new)(const char *uid);
    /* A method matches if exactly `n_params` segments follow it; 0 to 8. */
    duda_method_t *(*method_new)(const char *uid, const char *function_name, int n_params);
    duda_method_t *(*method_builtin_new)(const char *uid, duda_request_fn fn, int n_params);
    /* A value of more than `max_len` bytes does not match; 0: any length. */
    duda_param_t *(*param_new)(const char *name, short max_len);

    void (*method_add_param)(duda_param_t *param, duda_method_t *method);
    void (*interface_add_method)(duda_method_t *method, duda_interface_t *interface);
    void (*add_interface)(duda_interface_t *interface);
};

/* Level 2, by the name "router.2"; only in duda_main(). */
struct duda_api_router_2 {
    /*
     * Adds a rule. A pattern without ":" is a prefix, as in map->static_add(); if it ends with a slash, the same path
     * without it is redirected. A pattern with ":name" segments, 32 at most, is compared segment by segment, and more
     * segments may follow. The first rule that matches is used. Returns 0 or -1.
     */
    int (*map)(const char *pattern, duda_request_fn fn);
    /* Sets the function for the URL of the service itself; without a slash it is redirected. Returns 0 or -1. */
    int (*root)(duda_request_fn fn);
};

#endif

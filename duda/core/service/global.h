// SPDX-License-Identifier: Apache-2.0
/*
 * The keys of a service's global variables, and the values of a worker or thread.
 */
#ifndef DUDA_CORE_SERVICE_GLOBAL_H
#define DUDA_CORE_SERVICE_GLOBAL_H

#include "service/service.h"

#include <duda/global.h>

struct service;

struct global_key {
    void *(*make)(void *data);
    void *data;
    void (*destroy)(void *value);
};

/* Of a service; grows in duda_main() only. */
struct globals {
    struct global_key *keys;
    unsigned n;
};

/* Of a worker or a thread: one for each key. */
struct global_values {
    void **items;
    unsigned n;
};

FEATURE_SLOT(globals_of, struct globals, service, FEATURE_GLOBALS)
FEATURE_SLOT(global_values_of, struct global_values, service_worker, FEATURE_GLOBALS)

/* Makes the values; `values` must be those of `current`. Returns 0 or -ENOMEM. */
int global_make_values(const struct service *s, struct global_values *values);
/* Has this thread, which is none of a worker, use the values. NULL: none. */
void global_use(struct global_values *values);
/* Destroys the values, the last one first. */
void global_destroy_values(const struct service *s, struct global_values *values);

/* Hooks of features.c: the values of a worker. */
int global_start_worker(struct service_worker *w);
void global_release_worker(struct service_worker *w);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * The keys of a service's global variables, and the values of a worker or thread.
 */
#ifndef DUDA_CORE_SERVICE_GLOBAL_H
#define DUDA_CORE_SERVICE_GLOBAL_H

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

/* Makes the values; `values` must be those of `current`. Returns 0 or -ENOMEM. */
int global_make_values(const struct service *s, struct global_values *values);
/* Destroys the values, the last one first. */
void global_destroy_values(const struct service *s, struct global_values *values);

#endif

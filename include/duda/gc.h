// SPDX-License-Identifier: Apache-2.0
/*
 * The object `gc`: memory that is freed when a request ends.
 */
#ifndef DUDA_GC_H
#define DUDA_GC_H

#include "types.h"

struct duda_api_gc {
    /*
     * Frees `ptr`, which malloc() or mem->alloc() has returned, when the request has ended: the response was sent or
     * the client has left, and its `done` callback has returned. Memory that response->print_ref() was given may so
     * be freed. Returns 0, or -1: no memory; `ptr` is then still the caller's. NULL is ignored.
     */
    int (*add)(duda_request_t *dr, void *ptr);
    /* Calls `destroy(ptr)` in the same way; the last one added first. */
    int (*add_destroy)(duda_request_t *dr, void *ptr, void (*destroy)(void *ptr));
};

DUDA_OBJECT(struct duda_api_gc, gc)

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * The object `mem`: the heap of the C library, by other names. Memory of malloc() may be freed with mem->free(), and
 * the reverse. Any thread.
 */
#ifndef DUDA_MEM_H
#define DUDA_MEM_H

#include "types.h"

struct duda_api_mem {
    /* Return `size` bytes (alloc_z: zeroed), or NULL. */
    void *(*alloc)(size_t size);
    void *(*alloc_z)(size_t size);
    /* As realloc(3) and free(3). */
    void *(*realloc)(void *ptr, size_t size);
    void (*free)(void *ptr);
};

DUDA_OBJECT(struct duda_api_mem, mem)

#endif

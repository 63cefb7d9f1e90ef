// SPDX-License-Identifier: Apache-2.0
/*
 * Memory of generations, services and their workers. Requests have arenas.
 */
#ifndef DUDA_CORE_HEAP_H
#define DUDA_CORE_HEAP_H

#include <monkey/arena.h>

#include <string.h>

/* Returns `size` zeroed bytes, or NULL; heap_free() needs the same size. */
static inline void *heap_zalloc(size_t size)
{
    void *p = mk_account_alloc(NULL, size);
    return p ? memset(p, 0, size) : NULL;
}

static inline void heap_free(void *p, size_t size)
{
    mk_account_free(NULL, p, size);
}

#endif

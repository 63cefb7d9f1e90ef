// SPDX-License-Identifier: Apache-2.0
/*
 * Memory of generations, services and their workers. Requests have arenas, and what is too large for those.
 */
#ifndef DUDA_CORE_COMMON_HEAP_H
#define DUDA_CORE_COMMON_HEAP_H

#include <monkey/base/arena.h>

#include <string.h>

/* Returns `size` zeroed bytes, or NULL; heap_free() needs the same size. */
static inline void *heap_zalloc(size_t size)
{
    return mk_account_zalloc(NULL, size);
}

static inline void heap_free(void *p, size_t size)
{
    mk_account_free(NULL, p, size);
}

/* Returns `size` bytes that begin with the `old_size` bytes of `p`, which is freed; or NULL, and `p` stays. */
static inline void *heap_grow(void *p, size_t old_size, size_t size)
{
    void *grown = heap_zalloc(size);
    if (grown && old_size)
        memcpy(grown, p, old_size);
    if (grown)
        heap_free(p, old_size);
    return grown;
}

/*
 * Returns `size` bytes on the heap that are freed with the arena of a request, and count for its account; NULL without
 * memory. For bodies: the arena is not made for them.
 */
void *heap_alloc_until(struct mk_arena *arena, size_t size);

#endif

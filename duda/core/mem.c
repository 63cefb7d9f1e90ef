// SPDX-License-Identifier: Apache-2.0
/*
 * The object `mem`: the heap that services use with malloc(), too. The framework's own memory is that of heap.h.
 */
#include "objects.h"

#include <stdlib.h>

static void *alloc_zeroed(size_t size)
{
    return calloc(1, size);
}

const struct duda_api_mem object_mem = {
    .alloc = malloc,
    .alloc_z = alloc_zeroed,
    .realloc = realloc,
    .free = free,
};

// SPDX-License-Identifier: Apache-2.0
/*
 * The object `mem`, and the same for the framework (mem.h).
 */
#include "common/mem.h"

#include "objects.h"

#include <stdlib.h>

void *mem_alloc(size_t size)
{
    return malloc(size);
}

void *mem_realloc(void *ptr, size_t size)
{
    return realloc(ptr, size);
}

void mem_free(void *ptr)
{
    free(ptr);
}

char *mem_dup(struct mk_str s)
{
    char *copy = mem_alloc(s.len + 1);
    if (!copy)
        return NULL;
    if (s.len)
        memcpy(copy, s.p, s.len);
    copy[s.len] = 0;
    return copy;
}

void *mem_alloc_zeroed(size_t size)
{
    return calloc(1, size);
}

const struct duda_api_mem object_mem = {
    .alloc = mem_alloc,
    .alloc_z = mem_alloc_zeroed,
    .realloc = mem_realloc,
    .free = mem_free,
};

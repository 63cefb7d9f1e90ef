// SPDX-License-Identifier: Apache-2.0
/*
 * The heap of the C library, for memory that services free with free() or mem->free(). The framework's own memory is
 * that of heap.h.
 */
#ifndef DUDA_CORE_COMMON_MEM_H
#define DUDA_CORE_COMMON_MEM_H

#include <monkey/base/str.h>

/* As malloc(3), calloc(3) with one item, realloc(3) and free(3). */
void *mem_alloc(size_t size);
void *mem_alloc_zeroed(size_t size);
void *mem_realloc(void *ptr, size_t size);
void mem_free(void *ptr);
/* Returns a copy with a NUL after it, or NULL. */
char *mem_dup(struct mk_str s);

#endif

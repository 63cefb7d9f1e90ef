// SPDX-License-Identifier: Apache-2.0
/*
 * A header of the server that services of the original API included: memory of malloc(), and hints for branches.
 */
#ifndef DUDA_MK_MEMORY_H
#define DUDA_MK_MEMORY_H

#include "webservice.h"

#define mk_mem_malloc(size) monkey->mem_alloc(size)
#define mk_mem_malloc_z(size) monkey->mem_alloc_z(size)
#define mk_mem_realloc(ptr, size) monkey->mem_realloc(ptr, size)
#define mk_mem_free(ptr) monkey->mem_free(ptr)
#define mk_pointer_free(string) (monkey->mem_free((string)->data), (string)->data = NULL, (string)->len = 0)
#define mk_pointer_reset(string) ((string)->data = NULL, (string)->len = 0)

#endif

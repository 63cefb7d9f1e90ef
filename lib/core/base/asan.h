// SPDX-License-Identifier: Apache-2.0
/*
 * The interface to AddressSanitizer and MemorySanitizer. CMakeLists.txt defines MK_HAS_ASAN and MK_HAS_MSAN as 0 or 1,
 * according to MK_SANITIZE. With one of them each pool object is a separate allocation (MK__POOL_IS_MALLOC), so that
 * a use after free, or before initialization, is found.
 */
#ifndef MK_BASE_ASAN_H
#define MK_BASE_ASAN_H

#include <stddef.h>

enum { MK__POOL_IS_MALLOC = MK_HAS_ASAN || MK_HAS_MSAN };

/* As <sanitizer/asan_interface.h> and <sanitizer/msan_interface.h> declare them; not every compiler has the headers. */
void __asan_poison_memory_region(const volatile void *p, size_t size);
void __asan_unpoison_memory_region(const volatile void *p, size_t size);
void __msan_allocated_memory(const volatile void *p, size_t size);

/* Makes each access to the bytes an error, until they are unpoisoned. */
static inline void mk__asan_poison(const void *p, size_t size)
{
    if (MK_HAS_ASAN)
        __asan_poison_memory_region(p, size);
}

/* Allows access to the bytes again, which are not initialized. */
static inline void mk__asan_unpoison(const void *p, size_t size)
{
    if (MK_HAS_ASAN)
        __asan_unpoison_memory_region(p, size);
    if (MK_HAS_MSAN)
        __msan_allocated_memory(p, size);
}

#endif

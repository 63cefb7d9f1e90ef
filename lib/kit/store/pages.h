// SPDX-License-Identifier: Apache-2.0
/*
 * Memory of the kernel for a store, and the budget that counts it.
 */
#ifndef MK_STORE_PAGES_H
#define MK_STORE_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <stdatomic.h>

enum { MK__PAGES_HUGE = 2 * 1024 * 1024 };

/* As mk__alloc_countdown (base/arena.h), of mappings. */
extern _Atomic long mk__pages_countdown;

/*
 * Maps zeroed memory, of which pages are used once they are touched. From MK__PAGES_HUGE on it is aligned to that, and
 * asks for huge pages. Returns NULL without memory.
 */
void *mk__pages_map(size_t bytes);
/* Maps zeroed memory, more than is likely to be used. Returns NULL without address space. */
void *mk__pages_reserve(size_t bytes);
/* Gives the memory of whole pages back; they are zeroed when they are used again. */
void mk__pages_discard(void *p, size_t bytes);
void mk__pages_unmap(void *p, size_t bytes);

/* Makes each access to the bytes an error in builds with AddressSanitizer, until they are unpoisoned. */
void __asan_poison_memory_region(const volatile void *p, size_t size);
void __asan_unpoison_memory_region(const volatile void *p, size_t size);

static inline void mk__pages_poison(const void *p, size_t bytes)
{
    if (MK_HAS_ASAN)
        __asan_poison_memory_region(p, bytes);
}

static inline void mk__pages_unpoison(const void *p, size_t bytes)
{
    if (MK_HAS_ASAN)
        __asan_unpoison_memory_region(p, bytes);
}

/* ── the budget ── */

/* The memory of a store. `reserved` bytes of `max` are for tables: slabs leave free what tables have not yet taken. */
struct mk__budget {
    _Atomic uint64_t max, bytes;
    _Atomic uint64_t reserved, table_bytes;
};

/* Counts `n` bytes more. Returns false if they and `spare` bytes do not fit. */
static inline bool mk__budget_take(struct mk__budget *b, uint64_t n, uint64_t spare)
{
    uint64_t max = atomic_load_explicit(&b->max, memory_order_relaxed);
    uint64_t bytes = atomic_load_explicit(&b->bytes, memory_order_relaxed);
    do
        if (n > max || spare > max - n || bytes > max - n - spare)
            return false;
    while (!atomic_compare_exchange_weak_explicit(&b->bytes, &bytes, bytes + n, memory_order_relaxed,
                                                  memory_order_relaxed));
    return true;
}

static inline void mk__budget_give(struct mk__budget *b, uint64_t n)
{
    atomic_fetch_sub_explicit(&b->bytes, n, memory_order_relaxed);
}

/* Returns the bytes that slabs leave free for tables. */
static inline uint64_t mk__budget_spare(struct mk__budget *b)
{
    uint64_t reserved = atomic_load_explicit(&b->reserved, memory_order_relaxed);
    uint64_t taken = atomic_load_explicit(&b->table_bytes, memory_order_relaxed);
    return reserved > taken ? reserved - taken : 0;
}

/* Returns the bytes that slabs may still take. */
static inline uint64_t mk__budget_left(struct mk__budget *b)
{
    uint64_t max = atomic_load_explicit(&b->max, memory_order_relaxed);
    uint64_t used = atomic_load_explicit(&b->bytes, memory_order_relaxed) + mk__budget_spare(b);
    return max > used ? max - used : 0;
}

#endif

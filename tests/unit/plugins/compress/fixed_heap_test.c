// SPDX-License-Identifier: Apache-2.0
/* The heap within one piece of memory: what is taken does not overlap, what is given back can be taken again. */
#include "plugins/compress/fixed_heap.h"

#include "testing.h"

enum { HEAP_BYTES = 4096, PIECES = 24 };

static _Alignas(16) char memory[HEAP_BYTES];

TEST(all_comes_back)
{
    struct fixed_heap heap;
    void *pieces[PIECES] = {NULL};
    uint32_t seed = 1;
    fixed_heap_init(&heap, memory, sizeof(memory));
    for (unsigned round = 0; round < 20000; round++) {
        seed = seed * 1664525 + 1013904223;
        unsigned i = (seed >> 8) % PIECES;
        size_t size = (seed >> 16) % 400;
        if (pieces[i]) {
            size_t n = *(unsigned short *)pieces[i];
            for (size_t k = 2; k < n; k++)
                assert_int_equal(((char *)pieces[i])[k], (char)i);
            assert_true(fixed_heap_free(&heap, pieces[i]));
            pieces[i] = NULL;
        } else if (size >= 2 && (pieces[i] = fixed_heap_alloc(&heap, size))) {
            assert_int_equal((uintptr_t)pieces[i] % 16, 0);
            memset(pieces[i], (int)i, size);
            *(unsigned short *)pieces[i] = (unsigned short)size;
        }
    }
    for (unsigned i = 0; i < PIECES; i++)
        if (pieces[i])
            fixed_heap_free(&heap, pieces[i]);
    assert_non_null(fixed_heap_alloc(&heap, HEAP_BYTES - 64));
    assert_true(heap.used_max <= HEAP_BYTES);
}

TEST(limits)
{
    struct fixed_heap heap;
    char other[16];
    fixed_heap_init(&heap, memory, sizeof(memory));
    assert_null(fixed_heap_alloc(&heap, SIZE_MAX));
    assert_null(fixed_heap_alloc(&heap, HEAP_BYTES));
    assert_non_null(fixed_heap_alloc(&heap, 0));
    assert_false(fixed_heap_free(&heap, other));
    assert_false(fixed_heap_free(&heap, memory + HEAP_BYTES));
    size_t n = 0;
    while (fixed_heap_alloc(&heap, 16))
        n++;
    assert_true(n > HEAP_BYTES / 80);
}

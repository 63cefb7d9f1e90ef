// SPDX-License-Identifier: Apache-2.0
/* Blocks of slabs: none overlap, free neighbours merge, the budget holds, and places and slabs can be emptied. */
#include "testing.h"

#include <stdlib.h>

#include "store/store.h"

enum { BLOCKS = 2000, OPERATIONS = 60000 };

static struct mk__budget budget;
static struct mk__slabs slabs;

static void open_slabs(uint64_t max)
{
    memset(&slabs, 0, sizeof(slabs));
    budget.max = max;
    budget.bytes = budget.reserved = budget.table_bytes = 0;
    mk__slabs_init(&slabs, &budget);
}

static void close_slabs(void)
{
    mk__slabs_release(&slabs);
    assert_int_equal(budget.bytes, 0);
}

TEST(sizes)
{
    open_slabs(64 << 20);
    for (size_t bytes = 1; bytes < 3 << 20; bytes += bytes / 3 + 1) {
        char *p = mk__slabs_alloc(&slabs, bytes, bytes < 56 ? bytes : 56);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % 16, 8);
        assert_true(mk__slabs_bytes_of(p) >= mk__slabs_block_bytes(bytes));
        assert_true(mk__slabs_bytes_of(p) < mk__slabs_block_bytes(bytes) + (bytes < 1 << 20 ? 32 : 4096));
        for (size_t i = 0; i < bytes && i < 56; i++)
            assert_int_equal(p[i], 0);
        memset(p, 1, bytes);
        mk__slabs_free(&slabs, p);
        assert_true(slabs.n_empty <= 1);
    }
    close_slabs();
}

struct block {
    unsigned char *p;
    size_t bytes;
    unsigned char fill;
};

static size_t choose_bytes(void)
{
    unsigned kind = (unsigned)rand() % 10;
    return kind < 6 ? 32 + (size_t)rand() % 200 : kind < 9 ? (size_t)rand() % 8000 : (size_t)rand() % 100000;
}

static void check_fill(const struct block *b)
{
    for (size_t i = 0; i < b->bytes; i += 37)
        assert_int_equal(b->p[i], b->fill);
}

static void change_block(struct block *b)
{
    if (b->p) {
        check_fill(b);
        mk__slabs_free(&slabs, b->p);
        b->p = NULL;
        return;
    }
    b->bytes = choose_bytes();
    b->fill = (unsigned char)rand();
    b->p = mk__slabs_alloc(&slabs, b->bytes, 0);
    if (b->p)
        memset(b->p, b->fill, b->bytes);
}

TEST(random_use)
{
    static struct block blocks[BLOCKS];
    uint64_t refused = 0;
    srand(7);
    open_slabs(4 << 20);
    for (unsigned i = 0; i < OPERATIONS; i++) {
        struct block *b = &blocks[(unsigned)rand() % BLOCKS];
        bool had = b->p != NULL;
        change_block(b);
        refused += !had && !b->p;
        assert_true(budget.bytes <= budget.max);
        assert_int_equal(budget.bytes, slabs.map_bytes);
    }
    assert_true(refused > 100); /* the budget was used up */
    for (unsigned i = 0; i < BLOCKS; i++)
        if (blocks[i].p)
            change_block(&blocks[i]);
    assert_true(slabs.map_bytes <= MK__PAGES_HUGE); /* one empty slab at most */
    assert_int_equal(slabs.n_empty, slabs.map_bytes > 0);
    close_slabs();
}

/* Slabs that small blocks have filled are used for large ones as soon as they are free. */
TEST(sizes_keep_no_memory)
{
    static void *p[200000];
    static const size_t sizes[] = {40, 3000, 200, 60000, 56};
    open_slabs(8 << 20);
    for (unsigned round = 0; round < COUNT(sizes); round++) {
        unsigned n = 0;
        while (n < COUNT(p) && (p[n] = mk__slabs_alloc(&slabs, sizes[round], 0)))
            n++;
        assert_true(n * mk__slabs_block_bytes(sizes[round]) > (7 << 20));
        for (unsigned i = 0; i < n; i += 2)
            mk__slabs_free(&slabs, p[i]);
        for (unsigned i = 1; i < n; i += 2)
            mk__slabs_free(&slabs, p[i]);
    }
    close_slabs();
}

/* ── places and closed slabs ── */

static void *fixed; /* a block that may not be held */

static bool may_hold(const void *p)
{
    return p != fixed;
}

static bool hold(void *p)
{
    return p != fixed;
}

TEST(windows)
{
    enum { N = 100, BYTES = 1000 };
    void *p[2000], *held[N];
    unsigned n = 0;
    open_slabs(64 * 1024);
    while (n < COUNT(p) && (p[n] = mk__slabs_alloc(&slabs, BYTES, 0)))
        n++;
    assert_int_equal(n, 64); /* one slab of 64 KB */
    fixed = p[3];
    unsigned found = mk__slabs_window(&slabs, 5 * BYTES, may_hold, hold, held, N);
    assert_in_range(found, 5, 6);
    for (unsigned i = 0; i < found; i++)
        mk__slabs_free(&slabs, held[i]);
    assert_non_null(mk__slabs_alloc(&slabs, 5 * BYTES, 0));
    assert_int_equal(mk__slabs_window(&slabs, 63 * 1024, may_hold, hold, held, N), 0); /* not around the fixed one */
    close_slabs();
}

TEST(windows_with_least_use)
{
    enum { N = 100, BYTES = 1000 };
    void *p[64], *held[N];
    fixed = NULL;
    open_slabs(64 * 1024);
    for (unsigned i = 0; i < COUNT(p); i++)
        assert_non_null(p[i] = mk__slabs_alloc(&slabs, BYTES, 0));
    for (unsigned i = 40; i < 50; i += 2)
        mk__slabs_free(&slabs, p[i]);
    unsigned found = mk__slabs_window(&slabs, 8 * BYTES, may_hold, hold, held, N);
    assert_int_equal(found, 4);
    for (unsigned i = 0; i < found; i++)
        assert_true((char *)held[i] > (char *)p[35] && (char *)held[i] < (char *)p[54]);
    close_slabs();
}

TEST(closed_slabs)
{
    enum { N = 4000, BYTES = 1000 };
    static void *p[N], *held[N];
    unsigned n = 0;
    fixed = NULL;
    open_slabs(2 << 20);
    while (n < N && (p[n] = mk__slabs_alloc(&slabs, BYTES, 0)))
        n++;
    uint64_t before = slabs.map_bytes;
    fixed = p[n - 1]; /* in the largest slab */
    mk__slabs_close(&slabs, 100 * 1024);
    assert_int_equal(slabs.closing_bytes, 128 * 1024);
    mk__slabs_close(&slabs, 128 * 1024); /* enough are closed */
    assert_int_equal(slabs.closing_bytes, 128 * 1024);
    mk__slabs_close(&slabs, 1 << 20);
    budget.max = before - 128 * 1024;
    assert_int_equal(slabs.closing_bytes, 1152 * 1024);
    unsigned found = mk__slabs_closing(&slabs, may_hold, hold, held, N);
    for (unsigned i = 0; i < found; i++)
        mk__slabs_free(&slabs, held[i]);
    assert_null(mk__slabs_alloc(&slabs, BYTES, 0)); /* what is free is in a closed slab, and the other one is full */
    assert_int_equal(slabs.map_bytes, before - 128 * 1024);
    mk__slabs_free(&slabs, fixed);
    assert_int_equal(slabs.map_bytes, before - 1152 * 1024);
    assert_int_equal(slabs.closing_bytes, 0);
    assert_non_null(mk__slabs_alloc(&slabs, BYTES, 0));
    close_slabs();
}

TEST(slabs_are_small_at_first)
{
    open_slabs(64 << 20);
    assert_non_null(mk__slabs_alloc(&slabs, 100, 0));
    assert_int_equal(slabs.map_bytes, 64 * 1024);
    for (uint64_t expected = 128 * 1024; expected <= 4 << 20; expected *= 2) {
        while (slabs.map_bytes < expected)
            assert_non_null(mk__slabs_alloc(&slabs, 1000, 0));
        assert_int_equal(slabs.map_bytes, expected);
    }
    while (slabs.map_bytes < 6 << 20)
        assert_non_null(mk__slabs_alloc(&slabs, 1000, 0));
    assert_int_equal((uintptr_t)slabs.first % MK__PAGES_HUGE, 0);
    assert_int_equal(slabs.map_bytes, 6 << 20);
    close_slabs();
}

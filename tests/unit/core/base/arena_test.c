// SPDX-License-Identifier: Apache-2.0
/* Arenas and accounts: storage, chunks, limits, budgets, clean-ups. */
#include "testing.h"

#include <errno.h>

#include <monkey/base/arena.h>

TEST(uses_storage_first)
{
    _Alignas(16) char storage[64];
    struct mk_account account = {0};
    struct mk_arena a;
    mk_arena_init(&a, &account, 4096, storage, sizeof(storage));
    assert_ptr_equal(mk_arena_alloc(&a, 1), storage);
    assert_ptr_equal(mk_arena_alloc(&a, 48), storage + 16);
    assert_int_equal(account.bytes, 0);
    char *more = mk_arena_alloc(&a, 1);
    assert_non_null(more);
    assert_true(more < storage || more >= storage + sizeof(storage));
    assert_int_equal(account.bytes, 1024);
    assert_int_equal(a.bytes, 1024);
    mk_arena_release(&a);
    mk_account_trim(&account);
    assert_int_equal(account.bytes, 0);
    memset(storage, 1, sizeof(storage)); /* the caller's again, all of it */
}

/* Some of the smallest chunks are kept for the next arena and others, on the account; under AddressSanitizer none. */
TEST(keeps_small_chunks)
{
    struct mk_account account = {0};
    enum { ARENAS = 200 };
    struct mk_arena a[ARENAS];
    for (int i = 0; i < ARENAS; i++) {
        mk_arena_init(&a[i], &account, 4096, NULL, 0);
        assert_non_null(mk_arena_alloc(&a[i], 1));
    }
    assert_int_equal(account.bytes, ARENAS * 1024);
    for (int i = 0; i < ARENAS; i++)
        mk_arena_release(&a[i]);
    size_t kept = account.bytes;
    assert_true(kept <= 128 * 1024);
    mk_arena_init(&a[0], &account, 4096, NULL, 0);
    mk__alloc_countdown = kept ? 0 : -1; /* the heap is not asked */
    assert_non_null(mk_arena_alloc(&a[0], 1000));
    mk__alloc_countdown = -1;
    mk_arena_release(&a[0]);
    assert_int_equal(account.bytes, kept);
    mk__alloc_countdown = kept ? 0 : -1;
    void *piece = mk__arena_alloc_piece(&account, MK__ARENA_PIECE_BYTES);
    mk__alloc_countdown = -1;
    assert_non_null(piece);
    mk__arena_free_piece(&account, piece, MK__ARENA_PIECE_BYTES);
    assert_int_equal(account.bytes, kept);
    mk_account_trim(&account);
    mk_account_trim(&account);
    assert_int_equal(account.bytes, 0);
}

/* Room for several allocations, in a chunk of that size. */
TEST(reserves)
{
    _Alignas(16) char storage[64];
    struct mk_account account = {0};
    struct mk_arena a;
    mk_arena_init(&a, &account, 1024, storage, sizeof(storage));
    mk__arena_reserve(&a, 64);
    assert_int_equal(account.bytes, 0); /* the storage has it */
    mk__arena_reserve(&a, 65);
    assert_int_equal(account.bytes, 96);
    char *first = mk_arena_alloc(&a, 1), *last = mk_arena_alloc(&a, 64);
    assert_ptr_equal(last, first + 16);
    mk__arena_reserve(&a, 1024 - 96 - 16); /* above the limit */
    mk__arena_reserve(&a, SIZE_MAX);
    assert_int_equal(account.bytes, 96);
    mk__arena_reserve(&a, 1024 - 96 - 32);
    assert_int_equal(account.bytes, 1008);
    mk__arena_reserve(&a, 1024);
    assert_int_equal(account.bytes, 1008);
    assert_non_null(mk_arena_alloc(&a, 1024 - 96 - 32));
    mk_arena_release(&a);
    assert_int_equal(account.bytes, 0);

    mk_arena_init(&a, NULL, 1024, NULL, 0);
    mk__alloc_countdown = 0;
    mk__arena_reserve(&a, 100);
    assert_int_equal(mk__alloc_countdown, -1);
    assert_int_equal(a.bytes, 0);
    mk_arena_release(&a);
}

/* A separate chunk for one allocation, while the one before continues. */
TEST(exact_chunks)
{
    _Alignas(16) char storage[64];
    struct mk_account account = {0};
    struct mk_arena a;
    mk_arena_init(&a, &account, 1024, storage, sizeof(storage));
    assert_ptr_equal(mk__arena_alloc_exact(&a, 17), storage);
    char *alone = mk__arena_alloc_exact(&a, 100);
    assert_non_null(alone);
    memset(alone, 1, 100);
    assert_int_equal((uintptr_t)alone % 16, 0);
    assert_int_equal(account.bytes, 16 + 112);
    assert_ptr_equal(mk_arena_alloc(&a, 1), storage + 32);
    assert_null(mk__arena_alloc_exact(&a, SIZE_MAX));
    assert_null(mk__arena_alloc_exact(&a, SIZE_MAX - 16));
    assert_null(mk__arena_alloc_exact(&a, 1024 - 128 - 15)); /* above the limit */
    assert_non_null(mk__arena_alloc_exact(&a, 1024 - 128 - 16));
    assert_int_equal(account.bytes, 1024);
    mk_arena_release(&a);
    mk_account_trim(&account);
    assert_int_equal(account.bytes, 0);
}

TEST(aligns)
{
    struct mk_arena a;
    mk_arena_init(&a, NULL, 1 << 20, NULL, 0);
    for (size_t size = 0; size < 3000; size += 37) {
        char *p = mk_arena_alloc(&a, size);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % 16, 0);
        memset(p, 0xff, size);
    }
    mk_arena_release(&a);
}

TEST(limit)
{
    struct mk_arena a;
    mk_arena_init(&a, NULL, 256, NULL, 0); /* less than a first chunk */
    assert_non_null(mk_arena_alloc(&a, 100));
    assert_int_equal(a.bytes, 256);
    assert_non_null(mk_arena_alloc(&a, 128));
    assert_null(mk_arena_alloc(&a, 1));
    mk_arena_release(&a);

    mk_arena_init(&a, NULL, 1024 + 100, NULL, 0); /* the last chunk takes what is left */
    assert_non_null(mk_arena_alloc(&a, 1000));
    assert_non_null(mk_arena_alloc(&a, 64));
    assert_int_equal(a.bytes, 1024 + 96);
    assert_null(mk_arena_alloc(&a, 32));
    mk_arena_release(&a);

    mk_arena_init(&a, NULL, SIZE_MAX, NULL, 0);
    assert_non_null(mk_arena_alloc(&a, 100000));
    assert_null(mk_arena_alloc(&a, SIZE_MAX));
    assert_null(mk_arena_alloc(&a, SIZE_MAX - 20));
    mk_arena_release(&a);

    mk_arena_init(&a, NULL, 0, NULL, 0);
    assert_null(mk_arena_alloc(&a, 0));
    mk_arena_release(&a);
}

TEST(account_has_a_budget)
{
    struct mk_account account = {.bytes_max = 100};
    void *p = mk_account_alloc(&account, 60);
    assert_non_null(p);
    assert_null(mk_account_alloc(&account, 41));
    assert_null(mk_account_alloc(&account, SIZE_MAX));
    assert_int_equal(account.bytes, 60);
    account.bytes_max = 50; /* a budget may shrink below what is in use */
    assert_null(mk_account_alloc(&account, 1));
    mk_account_free(&account, p, 60);
    mk_account_free(&account, NULL, 60);
    assert_int_equal(account.bytes, 0);
    p = mk_account_alloc(&account, 50);
    assert_non_null(p);
    mk_account_free(&account, p, 50);
}

TEST(dups_and_zeroes)
{
    struct mk_arena a;
    mk_arena_init(&a, NULL, 4096, NULL, 0);
    struct mk_str s = mk_arena_dup(&a, MK_STR("text"));
    assert_int_equal(s.len, 4);
    assert_string_equal(s.p, "text");
    assert_string_equal(mk_arena_dup(&a, MK_STR_NONE).p, "");
    static const char zeros[100];
    assert_memory_equal(mk_arena_zalloc(&a, 100), zeros, 100);
    mk_arena_release(&a);
}

struct trail {
    struct mk_arena *arena;
    char marks[8];
    size_t n;
};

static void mark_a(void *ctx)
{
    struct trail *t = ctx;
    t->marks[t->n++] = 'a';
}

static void mark_b_then_a(void *ctx)
{
    struct trail *t = ctx;
    t->marks[t->n++] = 'b';
    assert_int_equal(mk_arena_defer(t->arena, mark_a, t), 0);
}

/* An array of n items takes the memory of at most 2n, including its former places. */
TEST(grows_by_doubling)
{
    struct mk_arena a;
    uint32_t *items = NULL;
    mk_arena_init(&a, NULL, 1 << 16, NULL, 0);
    for (uint32_t n = 0; n < 4096; n++) {
        items = mk_arena_grow(&a, items, n, sizeof(*items));
        assert_non_null(items);
        items[n] = n;
    }
    for (uint32_t n = 0; n < 4096; n++)
        assert_int_equal(items[n], n);
    assert_null(mk_arena_grow(&a, items, 1 << 14, sizeof(*items)));
    mk_arena_release(&a);
}

TEST(cleans_in_reverse)
{
    struct mk_arena a;
    struct trail t = {.arena = &a};
    mk_arena_init(&a, NULL, 4096, NULL, 0);
    assert_int_equal(mk_arena_defer(&a, mark_a, &t), 0);
    assert_int_equal(mk_arena_defer(&a, mark_b_then_a, &t), 0);
    mk_arena_release(&a);
    assert_string_equal(t.marks, "baa");
    mk_arena_release(&a);
    assert_int_equal(t.n, 3);
}

static int allocate_much(void *ctx)
{
    struct mk_account *account = ctx;
    struct trail t = {0};
    struct mk_arena a;
    int err = 0;
    mk_arena_init(&a, account, 1 << 20, NULL, 0);
    for (int i = 0; i < 10 && !err; i++)
        err = mk_arena_alloc(&a, 5000) && mk_arena_dup(&a, MK_STR("x")).p ? 0 : -ENOMEM;
    if (!err)
        err = mk_arena_defer(&a, mark_a, &t);
    mk_arena_release(&a);
    assert_int_equal(account->bytes, 0);
    assert_int_equal(t.n, !err);
    return err;
}

TEST(failing_allocations)
{
    struct mk_account account = {0};
    assert_true(mk_test_failing_allocs(allocate_much, &account) >= 4);
}

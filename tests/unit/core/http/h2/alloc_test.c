// SPDX-License-Identifier: Apache-2.0
/* nghttp2's heap is on the account and is freed completely; a connection has a head buffer while it reads one. */
#include "testing.h"

#include "http/h2/alloc.h"

static struct mk_account account;

TEST(takes_and_gives)
{
    static const size_t sizes[] = {0, 1, 15, 16, 17, 1000, 100000};
    void *p[COUNT(sizes)];
    for (size_t i = 0; i < COUNT(sizes); i++) {
        p[i] = mk__h2_alloc(sizes[i], &account);
        assert_non_null(p[i]);
        assert_int_equal((uintptr_t)p[i] % 16, 0);
        memset(p[i], 0xff, sizes[i]);
    }
    assert_true(account.bytes >= 101049);
    mk__h2_alloc_free(NULL, &account);
    for (size_t i = 0; i < COUNT(sizes); i++)
        mk__h2_alloc_free(p[i], &account);
    assert_int_equal(account.bytes, 0);
}

TEST(zeroed)
{
    static const char zeros[1000];
    void *dirty = mk__h2_alloc(1000, &account);
    memset(dirty, 0xff, 1000);
    mk__h2_alloc_free(dirty, &account);
    char *p = mk__h2_alloc_zeroed(10, 100, &account);
    assert_memory_equal(p, zeros, 1000);
    mk__h2_alloc_free(p, &account);
    mk__h2_alloc_free(mk__h2_alloc_zeroed(0, 8, &account), &account);
    mk__h2_alloc_free(mk__h2_alloc_zeroed(8, 0, &account), &account);
    assert_int_equal(account.bytes, 0);
}

TEST(unused_sizes)
{
    static const struct {
        size_t n, size;
    } cases[] = {
        {SIZE_MAX, 2}, {2, SIZE_MAX},      {SIZE_MAX / 2, 3}, {1ull << 32, 1ull << 32},
        {1, SIZE_MAX}, {1, SIZE_MAX - 15}, {1, PTRDIFF_MAX},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_null(mk__h2_alloc_zeroed(cases[i].n, cases[i].size, &account));
        if (cases[i].n == 1)
            assert_null(mk__h2_alloc(cases[i].size, &account));
    }
    char *p = mk__h2_alloc(8, &account);
    assert_null(mk__h2_alloc_resize(p, SIZE_MAX - 8, &account)); /* it stays what it was */
    memset(p, 1, 8);
    mk__h2_alloc_free(p, &account);
    assert_int_equal(account.bytes, 0);
}

TEST(grows_and_shrinks)
{
    static const size_t sizes[] = {10, 10, 20, 5, 1000, 0, 3, 70000, 8};
    size_t kept = 0;
    char *p = NULL; /* as with malloc() */
    for (size_t i = 0; i < COUNT(sizes); i++) {
        p = mk__h2_alloc_resize(p, sizes[i], &account);
        assert_non_null(p);
        for (size_t n = 0; n < (kept < sizes[i] ? kept : sizes[i]); n++)
            assert_int_equal(p[n], (char)n);
        for (size_t n = 0; n < sizes[i]; n++)
            p[n] = (char)n;
        kept = sizes[i];
        assert_true(account.bytes >= kept && account.bytes <= kept + 32);
    }
    mk__h2_alloc_free(p, &account);
    assert_int_equal(account.bytes, 0);
}

TEST(no_memory)
{
    char *p = mk__h2_alloc(8, &account);
    memset(p, 7, 8);
    size_t before = account.bytes;
    account.bytes_max = before + 100;
    assert_null(mk__h2_alloc(1000, &account));
    assert_null(mk__h2_alloc_zeroed(10, 100, &account));
    assert_null(mk__h2_alloc_resize(p, 1000, &account));
    assert_int_equal(account.bytes, before);
    assert_int_equal(p[7], 7);
    account.bytes_max = 0;
    mk__h2_alloc_free(p, &account);
    assert_int_equal(account.bytes, 0);
}

/* ── head buffers ── */

static struct mk__http_settings settings = {.head.head_bytes_max = 1000};
static struct mk__h2_shared shared;
static struct mk__context http = {.settings = &settings, .account = &account};
static struct mk__conn conn = {.http = &http};

static void borrow(struct mk__h2 *h2)
{
    h2->head_buf = mk__h2_alloc_get_head_buf(h2);
    assert_non_null(h2->head_buf);
    assert_int_equal(h2->head_buf->size, settings.head.head_bytes_max + MK__READ_BYTES);
    assert_int_equal(h2->head_buf->head.len, 0);
    memset(h2->head_buf->data, 'x', h2->head_buf->size);
    h2->head_buf->head.len = 5;
}

static void drop_shared(void)
{
    mk_account_free(&account, shared.head_buf, sizeof(*shared.head_buf) + shared.head_buf->size);
    shared.head_buf = NULL;
    assert_int_equal(account.bytes, 0);
}

TEST(one_room_is_lent)
{
    struct mk__h2 first = {.conn = &conn, .shared = &shared}, second = {.conn = &conn, .shared = &shared};
    mk__h2_alloc_put_head_buf(&first); /* has none */
    assert_null(shared.head_buf);
    borrow(&first);
    struct mk__h2_head_buf *head_buf = first.head_buf;
    size_t one = account.bytes;
    mk__h2_alloc_put_head_buf(&first);
    assert_null(first.head_buf);
    assert_ptr_equal(shared.head_buf, head_buf);
    borrow(&second);
    assert_ptr_equal(second.head_buf, head_buf);
    assert_null(shared.head_buf);
    borrow(&first); /* while the other one reads a head as well */
    assert_int_equal(account.bytes, 2 * one);
    mk__h2_alloc_put_head_buf(&second);
    mk__h2_alloc_put_head_buf(&first); /* one is enough */
    assert_int_equal(account.bytes, one);
    drop_shared();
}

/* Settings of a reload may want larger heads, or smaller ones. */
TEST(rooms_grow_and_shrink)
{
    struct mk__h2 h2 = {.conn = &conn, .shared = &shared};
    borrow(&h2);
    mk__h2_alloc_put_head_buf(&h2);
    for (uint32_t bytes = 2000; bytes; bytes -= 500) {
        settings.head.head_bytes_max = bytes;
        borrow(&h2);
        mk__h2_alloc_put_head_buf(&h2);
    }
    drop_shared();
    settings.head.head_bytes_max = 1000;
}

TEST(no_room)
{
    struct mk__h2 h2 = {.conn = &conn, .shared = &shared};
    mk__alloc_countdown = 0;
    assert_null(mk__h2_alloc_get_head_buf(&h2));
    mk__alloc_countdown = -1;
    borrow(&h2);
    mk__h2_alloc_put_head_buf(&h2);
    settings.head.head_bytes_max = 2000;
    mk__alloc_countdown = 0;
    assert_null(mk__h2_alloc_get_head_buf(&h2));
    mk__alloc_countdown = -1;
    settings.head.head_bytes_max = 1000;
    assert_null(shared.head_buf);
    assert_int_equal(account.bytes, 0);
}

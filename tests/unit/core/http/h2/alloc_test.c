// SPDX-License-Identifier: Apache-2.0
/* A connection has a head buffer while it reads a head; bytes that wait grow, and are freed completely. */
#include "testing.h"

#include "base/arena.h"
#include "http/h2/alloc.h"

static struct mk_account account;

/* ── head buffers ── */

static struct mk__http_settings settings = {.head = {.line_bytes_max = 500, .head_bytes_max = 1000, .fields_max = 4}};
static struct mk__h2_shared shared;
static struct mk__context http = {.settings = &settings, .account = &account};
static struct mk__conn conn = {.http = &http};

static void borrow(struct mk__h2 *h2)
{
    h2->head_buf = mk__h2_alloc_get_head_buf(h2);
    assert_non_null(h2->head_buf);
    assert_int_equal(h2->head_buf->size, settings.head.head_bytes_max + settings.head.line_bytes_max);
    assert_int_equal(h2->head_buf->head.len, 0);
    memset(h2->head_buf->head.data, 'x', h2->head_buf->size);
    memset(h2->head_buf->fields, 'x', 4 * sizeof(struct mk_field));
    h2->head_buf->head.len = 5;
}

static void drop_shared(void)
{
    mk_account_free(&account, shared.head_buf,
                    sizeof(*shared.head_buf) + 4 * sizeof(struct mk_field) + shared.head_buf->size);
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

/* ── bytes that wait ── */

/* Without what the account keeps for the next ones. */
static size_t count_used(void)
{
    return account.bytes - (size_t)account.spares * MK__ARENA_PIECE_BYTES;
}

TEST(bytes_grow)
{
    struct mk__h2 h2 = {.conn = &conn, .shared = &shared};
    struct mk__h2_bytes b = {.len = 0};
    for (unsigned i = 1; i < 1000; i++) {
        char *to = mk__h2_alloc_extend(&h2, &b, i);
        assert_non_null(to);
        memset(to, (int)i, i);
        assert_true(count_used() == b.size && b.size >= b.len);
    }
    const char *at = b.p;
    for (unsigned i = 1; i < 1000; i++)
        for (unsigned n = 0; n < i; n++)
            assert_int_equal(*at++, (char)i);
    assert_ptr_equal(at, b.p + b.len);
    mk__h2_alloc_release(&h2, &b);
    assert_int_equal(count_used(), 0);
    mk_account_trim(&account);
    mk__h2_alloc_release(&h2, &b); /* twice is once */
}

TEST(bytes_without_memory)
{
    struct mk__h2 h2 = {.conn = &conn, .shared = &shared};
    struct mk__h2_bytes b = {.len = 0};
    mk__alloc_countdown = 0;
    assert_null(mk__h2_alloc_extend(&h2, &b, 10));
    mk__alloc_countdown = -1;
    memcpy(mk__h2_alloc_extend(&h2, &b, 10), "0123456789", 10);
    mk__alloc_countdown = 0;
    assert_null(mk__h2_alloc_extend(&h2, &b, MK__ARENA_PIECE_BYTES));
    mk__alloc_countdown = -1;
    assert_str_equal(mk_str(b.p, b.len), "0123456789");
    mk__h2_alloc_release(&h2, &b);
    assert_int_equal(count_used(), 0);
    mk_account_trim(&account);
}

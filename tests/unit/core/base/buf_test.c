// SPDX-License-Identifier: Apache-2.0
/* Buffers: growth, the maximum, the sticky error, fixed storage. */
#include "testing.h"

#include <errno.h>

#include <monkey/base/buf.h>

TEST(on_the_stack)
{
    MK_BUF_ON_STACK(b, 4);
    assert_true(b.fixed && b.size == 4 && !b.len);
    mk_buf_adds(&b, MK_STR("abcd"));
    assert_true(mk_str_eq(mk_buf_str(&b), MK_STR("abcd")) && !b.err);
    mk_buf_addc(&b, 'e');
    assert_true(b.err && b.len == 4);
}

TEST(grows_to_its_maximum)
{
    struct mk_buf b;
    mk_buf_init(&b, 1000);
    assert_null(b.data);
    for (int i = 0; i < 1000; i++)
        mk_buf_addc(&b, (char)('a' + i % 26));
    assert_int_equal(b.err, 0);
    assert_int_equal(b.len, 1000);
    assert_int_equal(b.size, 1000);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(b.data[i], 'a' + i % 26);
    mk_buf_addc(&b, 'x');
    assert_int_equal(b.err, -ENOBUFS);
    assert_int_equal(b.len, 1000);
    mk_buf_release(&b);
    assert_int_equal(b.err, 0);
    mk_buf_adds(&b, MK_STR("again"));
    assert_str_equal(mk_buf_str(&b), "again");
    mk_buf_release(&b);
}

TEST(error_sticks)
{
    struct mk_buf b;
    mk_buf_init(&b, 4);
    mk_buf_adds(&b, MK_STR("abcde"));
    mk_buf_adds(&b, MK_STR("a"));
    mk_buf_addf(&b, "%d", 1);
    assert_int_equal(mk_buf_reserve(&b, 0), -ENOBUFS);
    assert_int_equal(b.len, 0);
    assert_string_equal(mk_buf_cstr(&b), "");
    mk_buf_release(&b);
}

TEST(a_huge_maximum)
{
    struct mk_buf b;
    mk_buf_init(&b, SIZE_MAX);
    mk_buf_adds(&b, MK_STR("abc"));
    mk__alloc_countdown = 0;
    assert_int_equal(mk_buf_reserve(&b, SIZE_MAX / 2 + 2), -ENOMEM);
    assert_int_equal(mk__alloc_countdown, -1);
    assert_str_equal(mk_buf_str(&b), "abc");
    mk_buf_release(&b);
}

TEST(formats)
{
    struct mk_buf b;
    char text[300];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    mk_buf_init(&b, 4096);
    mk_buf_addf(&b, "%s", "");
    assert_int_equal(b.len, 0);
    mk_buf_addf(&b, "%d-%s;", 42, text);
    mk_buf_addf(&b, "%u", 7u);
    assert_int_equal(b.len, 3 + 299 + 1 + 1);
    assert_memory_equal(b.data, "42-x", 4);
    assert_memory_equal(b.data + b.len - 3, "x;7", 3);
    mk_buf_release(&b);
}

TEST(fixed_storage)
{
    char *storage = mk_test_guarded("........", 8);
    struct mk_buf b;
    mk_buf_init_fixed(&b, storage, 8);
    mk_buf_adds(&b, MK_STR("12345"));
    mk_buf_addf(&b, "%s", "67");
    assert_string_equal(mk_buf_cstr(&b), "1234567");
    mk_buf_addc(&b, '8');
    assert_int_equal(b.err, 0);
    assert_string_equal(mk_buf_cstr(&b), "");
    assert_int_equal(b.err, -ENOBUFS);
    assert_str_equal(mk_buf_str(&b), "12345678");
    mk_buf_release(&b);
    assert_ptr_equal(b.data, storage);
    assert_int_equal(b.len, 0);
    mk_buf_addf(&b, "%s", "12345678");
    assert_int_equal(b.err, -ENOBUFS); /* a formatted text needs room for its NUL */
    mk_test_unguard(storage, 8);
}

TEST(drops)
{
    struct mk_buf b;
    mk_buf_init(&b, 100);
    mk_buf_adds(&b, MK_STR("abcdef"));
    mk_buf_drop(&b, 2);
    assert_str_equal(mk_buf_str(&b), "cdef");
    mk_buf_drop(&b, 0);
    mk_buf_drop(&b, 4);
    assert_int_equal(b.len, 0);
    mk_buf_release(&b);
}

static int append_much(void *ctx)
{
    struct mk_buf b;
    (void)ctx;
    mk_buf_init(&b, 4096);
    for (int i = 0; i < 100; i++)
        mk_buf_addf(&b, "line %d\n", i);
    int err = b.err;
    assert_true(err == 0 || err == -ENOMEM);
    if (!err)
        assert_int_equal(b.len, 790);
    mk_buf_release(&b);
    return err;
}

TEST(failing_allocations)
{
    assert_int_equal(mk_test_failing_allocs(append_much, NULL), 5); /* 64 128 256 512 1024 */
}

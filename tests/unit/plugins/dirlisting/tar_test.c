// SPDX-License-Identifier: Apache-2.0
/* The writer of archives. What is in them is tested end to end with other readers. */
#include "testing.h"

#include <errno.h>
#include <monkey/base/buf.h>
#include <stdio.h>

#include "plugins/dirlisting/archive.h"

enum { BLOCK = 512 };

static struct mk_buf out;

static int set_up(void **state)
{
    char reason[256];
    struct mk_buf error;
    (void)state;
    mk_buf_init_fixed(&error, reason, sizeof(reason));
    mk_buf_init(&out, 1024 * 1024);
    return tar_load(&error);
}

static int tear_down(void **state)
{
    (void)state;
    mk_buf_release(&out);
    return 0;
}

/* Bytes of a header: name, mode, owner, size in octal, type. */
static void assert_header(const char *at, const char *name, const char *mode, const char *size, char type)
{
    assert_string_equal(at, name);
    assert_memory_equal(at + 100, mode, 6);
    assert_memory_equal(at + 108, "000000", 6);
    assert_memory_equal(at + 124, size, 11);
    assert_int_equal(at[156], type);
    assert_int_equal(at[265], '\0'); /* no name of an owner */
}

TEST(tar)
{
    struct tar *t = tar_new(ARCHIVE_TAR, &out);
    assert_non_null(t);
    assert_int_equal(tar_add_folder(t, "pub/", 0), 0);
    assert_int_equal(tar_add_file(t, "pub/a\n\xff", 1000, 1), 0);
    char data[1000];
    memset(data, 'x', sizeof(data));
    assert_int_equal(tar_write(t, data, 600), 0);
    assert_int_equal(tar_write(t, data, 400), 0);
    assert_int_equal(tar_end(t), 0);
    tar_free(t);
    assert_true(out.len >= 6 * BLOCK && out.len % BLOCK == 0);
    assert_header(out.data, "pub/", "000075", "00000000000", '5');
    assert_header(out.data + BLOCK, "pub/a\n\xff", "000064", "00000001750", '0');
    assert_memory_equal(out.data + 2 * BLOCK, data, 1000);
    mk_buf_drop(&out, out.len);
}

/* A reader takes nothing for whole that was not written to its end. */
TEST(an_archive_without_an_end)
{
    char data[100] = "";
    for (enum archive_kind kind = ARCHIVE_TAR; kind < ARCHIVE_KINDS; kind++) {
        struct tar *t = tar_new(kind, &out);
        assert_non_null(t);
        assert_int_equal(tar_add_file(t, "large", (uint64_t)1 << 40, 0), 0);
        assert_int_equal(tar_write(t, data, sizeof(data)), 0);
        size_t before = out.len;
        tar_free(t);
        assert_int_equal(out.len, before);
        mk_buf_drop(&out, out.len);
    }
}

TEST(other_buffers)
{
    struct mk_buf other;
    mk_buf_init(&other, 1024 * 1024);
    struct tar *t = tar_new(ARCHIVE_TAR_GZ, &out);
    assert_int_equal(tar_add_folder(t, "a", 0), 0);
    tar_set_output(t, &other);
    assert_int_equal(tar_end(t), 0);
    tar_free(t);
    assert_int_equal(out.len, 0);
    assert_true(other.len > 20);
    assert_memory_equal(other.data, "\x1f\x8b", 2);
    mk_buf_release(&other);
}

/* The buffer has a limit, and no memory is an error of the writer. */
TEST(full_buffers)
{
    char storage[BLOCK];
    struct mk_buf small;
    mk_buf_init_fixed(&small, storage, sizeof(storage));
    struct tar *t = tar_new(ARCHIVE_TAR, &small);
    int err = 0;
    for (int i = 0; i < 200 && err == 0; i++)
        err = tar_add_folder(t, "a", 0);
    assert_int_equal(err, -EIO);
    tar_free(t);
}

TEST_FILE(set_up, tear_down)

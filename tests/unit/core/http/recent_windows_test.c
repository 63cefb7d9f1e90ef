// SPDX-License-Identifier: Apache-2.0
/* Windows of files that were found in the page cache a moment ago, and those that were not. */
#include "folder.h"
#include "harness.h"

#include "http/recent_windows.h"

#include <errno.h>

enum { W = MK__RECENT_WINDOW_BYTES, FILE_BYTES = 3 * W + 5 };

static struct mk__recent_windows windows;
static uint64_t now_ms;
static int fd;

static int check(uint64_t version, uint64_t from, uint64_t to)
{
    return mk__recent_windows_check(&windows, fd, version, from, to, now_ms);
}

static int open_file(void **state)
{
    (void)state;
    windows = (struct mk__recent_windows){0};
    now_ms = UINT64_C(0xfffffff0); /* its low bits wrap in a test */
    fd = open(mk_test_path("file"), O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    mk_test_make_cold();
    return 0;
}

static int close_file(void **state)
{
    (void)state;
    mk__recent_windows_release(&windows);
    return close(fd);
}

/* Brings the bytes of the file up to `end` into the page cache. */
static void warm(size_t end)
{
    static char bytes[FILE_BYTES];
    assert_int_equal(pread(fd, bytes, end, 0), end);
}

TEST(not_asked_twice_in_a_second, open_file, close_file)
{
    assert_int_equal(check(1, 0, W), -EAGAIN);
    warm(FILE_BYTES);
    assert_int_equal(check(1, 0, W), 0);
    mk_test_make_cold();
    now_ms += MK__RECENT_WINDOW_MS - 1;
    assert_int_equal(check(1, 0, W), 0);
    assert_int_equal(check(1, W / 2, W), 0); /* a part of it */
    now_ms++;
    assert_int_equal(check(1, 0, W), -EAGAIN);
}

TEST(other_windows_and_versions, open_file, close_file)
{
    warm(2 * W);
    assert_int_equal(check(1, 0, W), 0);
    assert_int_equal(check(1, W, 2 * W), 0);
    mk_test_make_cold();
    assert_int_equal(check(1, 0, W), 0);
    assert_int_equal(check(1, W, 2 * W), 0);
    assert_int_equal(check(1, 2 * W, 3 * W), -EAGAIN);
    assert_int_equal(check(2, 0, W), -EAGAIN);
}

TEST(unknown_versions, open_file, close_file)
{
    warm(W);
    assert_int_equal(check(0, 0, W), 0);
    mk_test_make_cold();
    assert_int_equal(check(0, 0, W), -EAGAIN);
    assert_null(windows.windows);
}

/* Only what was checked is known: the rest of a window may be on the disk. */
TEST(parts_of_a_window, open_file, close_file)
{
    warm(W);
    assert_int_equal(check(1, 0, 1000), 0);
    assert_int_equal(check(1, W / 2, W), 0); /* without what is before it */
    mk_test_make_cold();
    assert_int_equal(check(1, 0, 1000), 0);
    assert_int_equal(check(1, 0, 1001), -EAGAIN);
    assert_int_equal(check(1, W / 2, W), -EAGAIN);
}

TEST(the_end_of_the_file, open_file, close_file)
{
    warm(FILE_BYTES);
    assert_int_equal(check(1, 3 * W, FILE_BYTES + 1), -EIO);
    assert_int_equal(check(1, 3 * W, FILE_BYTES), 0);
    mk_test_make_cold();
    assert_int_equal(check(1, 3 * W, FILE_BYTES), 0);
    assert_int_equal(check(1, 3 * W, FILE_BYTES + 1), -EAGAIN);
}

/* More windows than there are places: the latest ones are known, and nothing else is. */
TEST(many_files, open_file, close_file)
{
    unsigned known = 0;
    warm(W);
    for (uint64_t version = 1; version <= 5000; version++)
        assert_int_equal(check(version, 0, W), 0);
    mk_test_make_cold();
    assert_int_equal(check(5000, 0, W), 0);
    for (uint64_t version = 1; version <= 5000; version++)
        known += check(version, 0, W) == 0;
    assert_in_range(known, 100, 256);
}

static int check_without_memory(void *ctx)
{
    (void)ctx;
    assert_int_equal(check(1, 0, W), 0);
    bool has_table = windows.windows;
    mk__recent_windows_release(&windows);
    windows = (struct mk__recent_windows){0};
    return has_table ? 0 : -ENOMEM;
}

TEST(no_memory, open_file, close_file)
{
    warm(W);
    assert_int_equal(mk_test_failing_allocs(check_without_memory, NULL), 1);
}

static int set_up(void **state)
{
    static char text[FILE_BYTES];
    if (mk_test_folder_make(state) < 0)
        return -1;
    mk_test_write("file", mk_str(text, sizeof(text)));
    return 0;
}

TEST_FILE(set_up, mk_test_folder_remove)

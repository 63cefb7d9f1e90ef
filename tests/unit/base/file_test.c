// SPDX-License-Identifier: Apache-2.0
/* Whole files and patterns, in a directory of their own. */
#include "folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/file.h"

static char root[] = "/tmp/mk-file-XXXXXX";

static void write_file(const char *name, struct mk_str text)
{
    int fd = open(name, O_WRONLY | O_CREAT, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text.p, text.len), text.len);
    close(fd);
}

static int set_up(void **state)
{
    (void)state;
    if (!mkdtemp(root) || chdir(root) < 0 || mkdir("dir", 0755) < 0 || mkfifo("fifo", 0644) < 0)
        return -1;
    write_file("ten", MK_STR("0123456789"));
    write_file("empty", MK_STR(""));
    write_file("B", MK_STR("b"));
    write_file("a b", MK_STR("a"));
    write_file(".hidden", MK_STR("h"));
    return symlink("ten", "link");
}

static int tear_down(void **state)
{
    (void)state;
    return chdir("/") < 0 ? -1 : mk_test_remove(root);
}

struct read_case {
    const char *name;
    size_t bytes_max;
    int result;
    const char *text;
};

static const struct read_case reads[] = {
    {"ten", 10, 0, "0123456789"}, {"ten", 9, -EFBIG, NULL},       {"link", 1000, 0, "0123456789"},
    {"empty", 0, 0, ""},          {"nothing", 10, -ENOENT, NULL}, {"dir", 10, -EISDIR, NULL},
    {"fifo", 10, -EINVAL, NULL},  {"ten/x", 10, -ENOTDIR, NULL},  {"/dev/null", 10, -EINVAL, NULL},
};

static void test_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(reads); i++) {
        struct mk_arena arena;
        struct mk_str text;
        mk_arena_init(&arena, NULL, 1 << 16, NULL, 0);
        assert_int_equal(mk__file_read(reads[i].name, reads[i].bytes_max, &arena, &text), reads[i].result);
        if (reads[i].result == 0) {
            assert_str_equal(text, reads[i].text);
            assert_int_equal(text.p[text.len], '\0');
        }
        mk_arena_release(&arena);
    }
}

static int read_and_glob(void *ctx)
{
    struct mk_arena arena;
    struct mk_str text, *names;
    size_t n;
    int r;

    (void)ctx;
    mk_arena_init(&arena, NULL, 1 << 16, NULL, 0);
    r = mk__file_read("ten", 10, &arena, &text);
    r = r < 0 ? r : mk__file_glob("*", &arena, &names, &n);
    mk_arena_release(&arena);
    return r;
}

static void test_allocations_fail(void **state)
{
    (void)state;
    assert_int_equal(mk_test_failing_allocs(read_and_glob, NULL), 1);
}

struct glob_case {
    const char *pattern, *names;
};

static const struct glob_case globs[] = {
    {"*", "B|a b|empty|fifo|link|ten|"},
    {"./[t]en", "./ten|"},
    {"?", "B|"},
    {".h*", ".hidden|"},
    {"x*", ""},
    {"nothing/*", ""},
    {"ten/*", ""},
    {"dir", ""},
};

static void test_glob(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(globs); i++) {
        struct mk_arena arena;
        struct mk_str *names;
        char got[256] = "";
        size_t n;
        mk_arena_init(&arena, NULL, 1 << 16, NULL, 0);
        assert_int_equal(mk__file_glob(globs[i].pattern, &arena, &names, &n), 0);
        for (size_t k = 0, len = 0; k < n; k++)
            len += (size_t)snprintf(got + len, sizeof(got) - len, "%s|", names[k].p);
        assert_string_equal(got, globs[i].names);
        mk_arena_release(&arena);
    }
}

static void test_is_glob(void **state)
{
    (void)state;
    assert_true(mk__file_is_glob(MK_STR("a/*.conf")));
    assert_true(mk__file_is_glob(MK_STR("a?")));
    assert_true(mk__file_is_glob(MK_STR("[a]")));
    assert_false(mk__file_is_glob(MK_STR("a.conf]")));
    assert_false(mk__file_is_glob(MK_STR_NONE));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_allocations_fail),
        cmocka_unit_test(test_glob),
        cmocka_unit_test(test_is_glob),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

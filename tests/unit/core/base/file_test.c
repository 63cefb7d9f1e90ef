// SPDX-License-Identifier: Apache-2.0
/* Whole files and patterns, in their own directory. */
#include "folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

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
    umask(022);
    if (!mkdtemp(root) || chdir(root) < 0 || mkdir("dir", 0755) < 0 || mkdir("*?[\\]", 0755) < 0 ||
        mkfifo("fifo", 0644) < 0)
        return -1;
    write_file("ten", MK_STR("0123456789"));
    write_file("empty", MK_STR(""));
    write_file("B", MK_STR("b"));
    write_file("a b", MK_STR("a"));
    write_file(".hidden", MK_STR("h"));
    write_file("*?[\\]/in", MK_STR("i"));
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

TEST(read)
{
    for (size_t i = 0; i < COUNT(reads); i++) {
        struct mk_arena arena;
        struct mk_file_bytes bytes;
        mk_arena_init(&arena, NULL, 1 << 16, NULL, 0);
        assert_int_equal(mk_file_read(reads[i].name, reads[i].bytes_max, &arena, &bytes), reads[i].result);
        if (reads[i].result == 0) {
            assert_str_equal(mk_str(bytes.data, bytes.len), reads[i].text);
            assert_int_equal(bytes.data[bytes.len], '\0');
            assert_int_equal(bytes.mode, 0644);
        }
        mk_arena_release(&arena);
    }
}

static int read_and_glob(void *ctx)
{
    struct mk_arena arena;
    struct mk_file_bytes bytes;
    struct mk_str *names;
    size_t n;
    int r;

    (void)ctx;
    mk_arena_init(&arena, NULL, 1 << 16, NULL, 0);
    r = mk_file_read("ten", 10, &arena, &bytes);
    r = r < 0 ? r : mk__file_glob(MK_STR(""), MK_STR("*"), MK__FILE_ONLY, &arena, &names, &n);
    mk_arena_release(&arena);
    return r;
}

TEST(allocations_fail)
{
    assert_int_equal(mk_test_failing_allocs(read_and_glob, NULL), 1);
}

struct glob_case {
    const char *dir, *pattern, *names;
    unsigned flags;
};

static const struct glob_case globs[] = {
    {"", "*", "B|a b|empty|fifo|link|ten|", MK__FILE_ONLY},
    {"", "*", "*?[\\]|B|a b|dir|empty|fifo|link|ten|", MK__FILE_OR_FOLDER},
    {"./", "[t]en", "./ten|", MK__FILE_ONLY},
    {"", "?", "B|", MK__FILE_ONLY},
    {"", ".h*", ".hidden|", MK__FILE_ONLY},
    {"", "x*", "", MK__FILE_ONLY},
    {"nothing", "/*", "", MK__FILE_ONLY},
    {"ten", "/*", "", MK__FILE_ONLY},
    {"", "dir", "", MK__FILE_ONLY},
    {"", "dir", "dir|", MK__FILE_OR_FOLDER},
    {"*?[\\]", "/*", "*?[\\]/in|", MK__FILE_ONLY}, /* the folder is no pattern */
    {"d?r", "/*", "", MK__FILE_ONLY},
};

TEST(glob)
{
    for (size_t i = 0; i < COUNT(globs); i++) {
        const struct glob_case *c = &globs[i];
        struct mk_arena arena;
        struct mk_str *names;
        char got[256] = "";
        size_t n;
        mk_arena_init(&arena, NULL, 1 << 16, NULL, 0);
        assert_int_equal(mk__file_glob(mk_str_c(c->dir), mk_str_c(c->pattern), c->flags, &arena, &names, &n), 0);
        for (size_t k = 0, len = 0; k < n; k++)
            len += (size_t)snprintf(got + len, sizeof(got) - len, "%s|", names[k].p);
        assert_string_equal(got, c->names);
        mk_arena_release(&arena);
    }
}

TEST(glob_of_a_folder_that_cannot_be_read)
{
    struct mk_arena arena;
    struct mk_str *names;
    size_t n;
    assert_int_equal(symlink("loop", "loop"), 0);
    mk_arena_init(&arena, NULL, 1 << 16, NULL, 0);
    assert_int_equal(mk__file_glob(MK_STR("loop"), MK_STR("/*"), MK__FILE_ONLY, &arena, &names, &n), -ELOOP);
    assert_int_equal(mk__file_glob(MK_STR("loop"), MK_STR("/*"), MK__FILE_SKIP_UNREADABLE, &arena, &names, &n), 0);
    assert_int_equal(n, 0);
    mk_arena_release(&arena);
    assert_int_equal(unlink("loop"), 0);
}

TEST(is_glob)
{
    assert_true(mk__file_is_glob(MK_STR("a/*.conf")));
    assert_true(mk__file_is_glob(MK_STR("a?")));
    assert_true(mk__file_is_glob(MK_STR("[a]")));
    assert_false(mk__file_is_glob(MK_STR("a.conf]")));
    assert_false(mk__file_is_glob(MK_STR_NONE));
}

struct output_case {
    const char *path;
    int result;
    const char *file; /* what it opens */
};

static const struct output_case outputs[] = {
    {"ten", 0, "ten"},           {"./dir/../ten", 0, "ten"}, {"to-dir/new", 0, "dir/new"},
    {"to-nothing", 0, "later"},  {"link", 0, "ten"},         {"dir", -EISDIR, NULL},
    {"to-dir", -EISDIR, NULL},   {"dir/", -EISDIR, NULL},    {"nothing/new", -ENOENT, NULL},
    {"ten/new", -ENOTDIR, NULL}, {"loop", -ELOOP, NULL},     {"", -ENOENT, NULL},
};

/* Opens, and asks beforehand whether that will succeed; the answers agree. */
TEST(output)
{
    struct stat a, b;
    assert_int_equal(symlink("dir/", "to-dir") + symlink("later", "to-nothing") + symlink("loop", "loop"), 0);
    for (size_t i = 0; i < COUNT(outputs); i++) {
        assert_int_equal(mk_file_check_output(outputs[i].path), outputs[i].result);
        int fd = mk_file_open_output(outputs[i].path, O_WRONLY | O_APPEND | O_CREAT, 0600, NULL);
        assert_int_equal(fd < 0 ? fd : 0, outputs[i].result);
        if (fd < 0)
            continue;
        assert_int_equal(fstat(fd, &a) + stat(outputs[i].file, &b), 0);
        assert_true(a.st_ino == b.st_ino);
        assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
        close(fd);
    }
}

TEST(output_of_long_paths)
{
    char path[PATH_MAX + 2];
    memset(path, 'a', sizeof(path));
    path[NAME_MAX + 1] = '\0';
    assert_int_equal(mk_file_check_output(path), -ENAMETOOLONG);
    path[NAME_MAX + 1] = 'a';
    path[sizeof(path) - 1] = '\0';
    assert_int_equal(mk_file_check_output(path), -ENAMETOOLONG);
    for (size_t i = 0; i + 1 < sizeof(path) - 1; i += 2)
        memcpy(path + i, "./", 2);
    path[PATH_MAX - 1] = '\0';
    assert_int_equal(mk_file_check_output(path), -EISDIR);
}

TEST(output_made)
{
    bool made = false;
    for (int i = 0; i < 2; i++) {
        int fd = mk_file_open_output("made", O_WRONLY | O_CREAT, 0640, &made);
        assert_true(fd >= 0);
        assert_int_equal(made, i == 0);
        close(fd);
    }
    assert_int_equal(mk_file_open_output("link", O_WRONLY | O_NOFOLLOW, 0, NULL), -ELOOP);
    assert_int_equal(mk_file_open_output("missing", O_WRONLY, 0, NULL), -ENOENT);
}

TEST(unlink_of_a_socket)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX, .sun_path = "socket"};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
    assert_int_equal(mk__file_unlink_socket("socket"), 0);
    assert_int_equal(mk__file_unlink_socket("socket"), -ENOENT);
    assert_int_equal(mk__file_unlink_socket("ten"), -ENOTSOCK);
    close(fd);
}

/* A standard stream, as through /dev/stderr: the kernel follows links of procfs. */
TEST(output_of_proc)
{
    char path[64];
    int pair[2];
    assert_int_equal(pipe(pair), 0);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", pair[1]);
    assert_int_equal(symlink(path, "to-proc"), 0);
    assert_int_equal(mk_file_check_output("to-proc"), 0);
    int fd = mk_file_open_output("to-proc", O_WRONLY | O_APPEND | O_CREAT, 0600, NULL);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "x", 1), 1);
    assert_int_equal(read(pair[0], path, sizeof(path)), 1);
    close(fd);
    close(pair[0]);
    close(pair[1]);
}

TEST_FILE(set_up, tear_down)

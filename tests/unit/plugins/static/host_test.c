// SPDX-License-Identifier: Apache-2.0
/* What other plugins get when they open a path of a host. */
#include "site.h"

#include <errno.h>

#include <monkey/plugin.h>

#include "plugins/static/static.h"

static struct mk_str try_files[] = {MK_STR("$path"), MK_STR("$path/"), MK_STR("/fallback")};

/* Returns "file: CONTENT", "folder" or the name of the error. */
static const char *tell(const char *path, uint32_t flags)
{
    static char text[64];
    struct stat st;
    int fd = mk__static_host_path_open(&site, mk_str_c(path), flags);
    if (fd < 0)
        return strerrorname_np(-fd);
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    ssize_t n = S_ISREG(st.st_mode) ? read(fd, text + 6, sizeof(text) - 7) : -1;
    memcpy(text, n < 0 ? "folder" : "file: ", 6);
    text[n < 0 ? 6 : 6 + n] = '\0';
    close(fd);
    return text;
}

static const struct {
    const char *path;
    uint32_t flags;
    const char *expected[3]; /* SymLink Off, Inside, On */
} cases[] = {
    {"/", 0, {"folder", "folder", "folder"}},
    {"/a", 0, {"file: a", "file: a", "file: a"}},
    {"/a", MK_OPEN_FOLDER, {"ENOENT", "ENOENT", "ENOENT"}},
    {"/a/", 0, {"ENOTDIR", "ENOTDIR", "ENOTDIR"}},
    {"/none", 0, {"ENOENT", "ENOENT", "ENOENT"}},
    {"/none/", 0, {"ENOENT", "ENOENT", "ENOENT"}},
    {"/sub", 0, {"EISDIR", "EISDIR", "EISDIR"}},
    {"/sub/", 0, {"folder", "folder", "folder"}},
    {"/indexed/", 0, {"file: index", "file: index", "file: index"}},
    {"/indexed/", MK_OPEN_FOLDER, {"folder", "folder", "folder"}},
    {"/.dot", 0, {"ENOENT", "ENOENT", "ENOENT"}},
    {"/sub/.dot/", MK_OPEN_FOLDER, {"ENOENT", "ENOENT", "ENOENT"}},
    {"/inside", 0, {"ELOOP", "file: a", "file: a"}},
    {"/folder/", MK_OPEN_FOLDER, {"ELOOP", "folder", "folder"}},
    {"/outside", 0, {"ELOOP", "EXDEV", "file: out"}},
};

TEST(paths)
{
    unsigned before = mk_test_descriptors();
    for (size_t i = 0; i < COUNT(cases); i++)
        for (int mode = SYMLINKS_OFF; mode <= SYMLINKS_ON; mode++) {
            settings.symlinks = mode;
            const char *found = tell(cases[i].path, cases[i].flags);
            if (strcmp(found, cases[i].expected[mode]) != 0 && strcmp(cases[i].expected[mode], "EXDEV") != 0)
                fail_msg("%s, %u, %d: %s", cases[i].path, cases[i].flags, mode, found);
            assert_true(strcmp(cases[i].expected[mode], "EXDEV") != 0 || strncmp(found, "file", 4) != 0);
        }
    assert_int_equal(mk_test_descriptors(), before);
}

/* The file that TryFiles has for all others is not the file of a path. */
TEST(fallbacks)
{
    host = (struct static_host){.try_files = {try_files, 3}, .n_tries = 3};
    assert_string_equal(tell("/a", 0), "file: a");
    assert_string_equal(tell("/none", 0), "ENOENT");
    assert_string_equal(tell("/sub", 0), "ENOENT");
    assert_string_equal(tell("/fallback", 0), "file: fallback");
    assert_string_equal(tell("/sub/", MK_OPEN_FOLDER), "folder");
    host = (struct static_host){.n_tries = 0};
}

static int set_up(void **state)
{
    static struct mk_str index[] = {MK_STR("index.html")};
    if (mk_test_folder_make(state) < 0)
        return -1;
    mk_test_mkdir("root");
    mk_test_mkdir("root/sub");
    mk_test_mkdir("root/sub/.dot");
    mk_test_mkdir("root/indexed");
    mk_test_write("out", MK_STR("out"));
    mk_test_write("root/a", MK_STR("a"));
    mk_test_write("root/fallback", MK_STR("fallback"));
    mk_test_write("root/.dot", MK_STR("dot"));
    mk_test_write("root/indexed/index.html", MK_STR("index"));
    mk_test_link("a", "root/inside");
    mk_test_link("sub", "root/folder");
    mk_test_link("../out", "root/outside");
    return open_site(index, 1);
}

TEST_FILE(set_up, tear_down)

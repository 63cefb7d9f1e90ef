// SPDX-License-Identifier: Apache-2.0
/* Scripts below a folder: the walk along the segments, links, and what is no script. */
#include "testing.h"

#include "folder.h"

#include <monkey/kit/cgi.h>

#include <errno.h>

static struct mk_cgi_script script;
static char real_root[512];

static int make_folder(void **state)
{
    (void)state;
    snprintf(mk_test_folder, sizeof(mk_test_folder), "/tmp/mk-cgi-XXXXXX");
    if (!mkdtemp(mk_test_folder) || !realpath(mk_test_folder, real_root))
        return -1;
    mk_test_mkdir("site");
    mk_test_mkdir("site/sub");
    mk_test_mkdir("site/.git");
    mk_test_write("site/run", MK_STR("#!/bin/sh\n"));
    assert_int_equal(chmod(mk_test_path("site/run"), 0755), 0);
    mk_test_write("site/plain", MK_STR("text"));
    mk_test_write("site/sub/a.py", MK_STR("text"));
    mk_test_write("site/.hidden", MK_STR("text"));
    mk_test_write("site/.git/hook", MK_STR("text"));
    mk_test_write("outside", MK_STR("text"));
    mk_test_link("sub/a.py", "site/inside");
    mk_test_link("../outside", "site/escape");
    mk_test_link("/etc/passwd", "site/absolute");
    mk_test_link("loop", "site/loop");
    mk_test_link("site", "current");
    assert_int_equal(mkfifo(mk_test_path("site/fifo"), 0644), 0);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    return mk_test_remove(mk_test_folder);
}

TEST_FILE(make_folder, remove_folder)

static int find(const char *root, enum mk_cgi_find how, const char *path)
{
    static char kept[512];
    snprintf(kept, sizeof(kept), "%s/%s", mk_test_folder, root);
    const struct mk_cgi_place place = {.root = mk_str_c(kept)};
    return mk_cgi_find_script(&place, how, mk_str_c(path), &script);
}

TEST(walks)
{
    static const struct {
        const char *path;
        int err;
        const char *name, *info, *file;
    } rows[] = {
        {"/run", 0, "/run", "", "/site/run"},
        {"/run/", 0, "/run", "/", "/site/run"},
        {"/run/a/../b", 0, "/run", "/a/../b", "/site/run"},
        {"/sub/a.py/info", 0, "/sub/a.py", "/info", "/site/sub/a.py"},
        {"/inside/x", 0, "/inside", "/x", "/site/sub/a.py"},
        {"/sub", -EISDIR, NULL, NULL, NULL},
        {"/sub/", -EISDIR, NULL, NULL, NULL},
        {"/", -EISDIR, NULL, NULL, NULL},
        {"", -ENOENT, NULL, NULL, NULL},
        {"*", -ENOENT, NULL, NULL, NULL},
        {"/missing", -ENOENT, NULL, NULL, NULL},
        {"/sub/missing/x", -ENOENT, NULL, NULL, NULL},
        {"/.hidden", -ENOENT, NULL, NULL, NULL},
        {"/.git/hook", -ENOENT, NULL, NULL, NULL},
        {"/escape", -EXDEV, NULL, NULL, NULL},
        {"/absolute", -EXDEV, NULL, NULL, NULL},
        {"/loop", -ELOOP, NULL, NULL, NULL},
        {"/fifo", -ENOENT, NULL, NULL, NULL},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        int err = find("site", MK_CGI_FIND_WALK, rows[i].path);
        if (err != rows[i].err)
            fail_msg("%s: %d", rows[i].path, err);
        if (err != 0)
            continue;
        assert_str_equal(script.name, rows[i].name);
        assert_str_equal(script.info, rows[i].info);
        assert_int_equal(strncmp(script.file, real_root, strlen(real_root)), 0);
        assert_string_equal(script.file + strlen(real_root), rows[i].file);
        assert_string_equal(script.root + strlen(real_root), "/site");
    }
}

/* The path of the script is that of the folder behind the link, so that it changes with it. */
TEST(exact)
{
    assert_int_equal(find("current", MK_CGI_FIND_EXACT, "/run"), 0);
    assert_string_equal(script.file + strlen(real_root), "/site/run");
    assert_string_equal(script.root + strlen(real_root), "/site");
    assert_true(script.may_run);
    assert_int_equal(find("current", MK_CGI_FIND_EXACT, "/plain"), 0);
    assert_false(script.may_run);
    assert_int_equal(find("current", MK_CGI_FIND_EXACT, "/run/x"), -ENOTDIR);
    assert_int_equal(find("current", MK_CGI_FIND_EXACT, "/sub"), -EISDIR);
    assert_int_equal(find("missing", MK_CGI_FIND_EXACT, "/run"), -ENOENT);
    assert_int_equal(find("site/run", MK_CGI_FIND_EXACT, "/run"), -ENOTDIR);
}

TEST(long_paths)
{
    static char path[MK_CGI_PATH_BYTES + 1];
    memset(path, '/', sizeof(path) - 1);
    assert_int_equal(find("site", MK_CGI_FIND_WALK, path), -ENAMETOOLONG);
    path[200] = '\0';
    assert_int_equal(find("site", MK_CGI_FIND_WALK, path), -ENAMETOOLONG); /* too many segments */
    memset(path, 'a', 300);
    path[0] = '/';
    path[300] = '\0';
    assert_int_equal(find("site", MK_CGI_FIND_WALK, path), -ENAMETOOLONG);
}

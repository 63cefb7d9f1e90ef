// SPDX-License-Identifier: Apache-2.0
/* Walks through folders: what is found, what is left out, and how deep it goes. */
#include "fixture.h"

#include "plugins/cache/calls.h"

#include <stdlib.h>
#include <sys/stat.h>

static struct folder_walk walk;

static struct {
    char paths[64][64];
    unsigned n;
} found;

static int compare_texts(const void *a, const void *b)
{
    return strcmp(a, b);
}

static int open_walk(const char *path)
{
    return folder_walk_open(&walk, site.current->default_host, &file_server, mk_str_c(path));
}

/* Keeps the paths below a folder that fit, sorted. */
static void walk_through(const char *path)
{
    struct mk_str next;
    found.n = 0;
    assert_int_equal(open_walk(path), 0);
    while (folder_walk_next(&walk, &next)) {
        assert_true(!next.len || next.p[next.len] == '\0');
        if (next.len && next.len < sizeof(found.paths[0])) {
            assert_true(found.n < COUNT(found.paths));
            memcpy(found.paths[found.n++], next.p, next.len + 1);
        }
    }
    assert_int_equal(walk.depth, 0);
    folder_walk_close(&walk);
    qsort(found.paths, found.n, sizeof(found.paths[0]), compare_texts);
}

static void expect_found(const char *expected)
{
    char text[512] = "";
    for (unsigned i = 0; i < found.n; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s", i ? " " : "", found.paths[i]);
    assert_string_equal(text, expected);
}

TEST(all_below)
{
    open_cache("", "");
    walk_through("/d/");
    expect_found("/d/a /d/b /d/e/c /d/link");
    walk_through("/d/e/");
    expect_found("/d/e/c");
    close_cache();
}

TEST(no_folders)
{
    open_cache("", "");
    assert_int_equal(open_walk("/none/"), -ENOENT);
    assert_int_equal(open_walk("/d/a/"), -ENOTDIR);
    assert_int_equal(open_walk("/d/.hidden/"), -ENOENT);
    folder_walk_close(&walk);
    close_cache();
}

TEST(depth)
{
    char path[512] = "root/deep";
    open_cache("", "");
    mk_test_mkdir(path);
    for (int i = 0; i < FOLDER_WALK_DEPTH_MAX + 2; i++) {
        char name[600];
        snprintf(name, sizeof(name), "%s/f", path);
        mk_test_write(name, MK_STR("x"));
        snprintf(path + strlen(path), sizeof(path) - strlen(path), "/d");
        mk_test_mkdir(path);
    }
    unsigned before = mk_test_descriptors(), paths = 0;
    struct mk_str next;
    assert_int_equal(open_walk("/deep/"), 0);
    while (folder_walk_next(&walk, &next))
        paths += next.len > 0;
    assert_int_equal(paths, FOLDER_WALK_DEPTH_MAX);
    folder_walk_close(&walk);
    assert_int_equal(mk_test_descriptors(), before);
    close_cache();
}

/* A walk that ends early closes its folders. */
TEST(closed)
{
    struct mk_str next;
    open_cache("", "");
    unsigned before = mk_test_descriptors();
    assert_int_equal(open_walk("/"), 0);
    while (walk.depth < 2 && folder_walk_next(&walk, &next))
        ;
    folder_walk_close(&walk);
    assert_int_equal(mk_test_descriptors(), before);
    close_cache();
}

static int make_files(void **state)
{
    static const char *const folders[] = {"root/d", "root/d/e", "root/d/.hidden"};
    static const char *const names[] = {"root/d/a", "root/d/b", "root/d/.c", "root/d/e/c", "root/d/.hidden/x"};
    if (make_cache_folder(state) < 0)
        return -1;
    for (size_t i = 0; i < COUNT(folders); i++)
        mk_test_mkdir(folders[i]);
    for (size_t i = 0; i < COUNT(names); i++)
        mk_test_write(names[i], MK_STR("x"));
    return symlink("../d", mk_test_path("root/d/link"));
}

TEST_FILE(make_files, mk_test_folder_remove)

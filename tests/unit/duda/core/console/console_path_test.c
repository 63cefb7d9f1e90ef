// SPDX-License-Identifier: Apache-2.0
/* The paths of a console: which may be configured, and what requests mean. */
#include "testing.h"

#include "duda/core/console/console_path.h"

TEST(paths_that_are_right)
{
    static const char *const paths[] = {"/console",       "/console/", "/a/b",    "/a/b/",
                                        "/.well-known/x", "/-._~",     "/..a/..."};
    for (size_t i = 0; i < COUNT(paths); i++)
        assert_null(console_path_check(mk_str_c(paths[i])));
}

TEST(paths_that_are_wrong)
{
    static const char *const paths[] = {"",      "/",    "//",   "a",      "console/", "//a",  "/a//",
                                        "/a//b", "/.",   "/..",  "/a/../", "/a/./b",   "/a?b", "/a#b",
                                        "/a%20", "/a b", "/a\n", "/<a>",   "/:a",      "/*a",  "/ä"};
    char path[CONSOLE_PATH_BYTES_MAX + 2];
    for (size_t i = 0; i < COUNT(paths); i++) {
        size_t len = strlen(paths[i]);
        char *data = mk_test_guarded(paths[i], len);
        assert_non_null(console_path_check(mk_str(data, len)));
        mk_test_unguard(data, len);
    }
    memset(path, 'a', sizeof(path));
    path[0] = '/';
    assert_null(console_path_check(mk_str(path, CONSOLE_PATH_BYTES_MAX)));
    assert_non_null(console_path_check(mk_str(path, CONSOLE_PATH_BYTES_MAX + 1)));
}

TEST(what_requests_mean)
{
    static const struct {
        const char *rest;
        enum console_view view;
    } rows[] = {
        {"/a/c", CONSOLE_SLASH},
        {"/a/c/", CONSOLE_PAGE},
        {"/a/c/messages", CONSOLE_MESSAGES},
        {"/a/c/map", CONSOLE_MAP},
        {"", CONSOLE_NONE},
        {"/", CONSOLE_NONE},
        {"/a", CONSOLE_NONE},
        {"/a/", CONSOLE_NONE},
        {"/a/cc", CONSOLE_NONE},
        {"/a/c/messages/", CONSOLE_NONE},
        {"/a/c/maps", CONSOLE_NONE},
        {"/a/c//", CONSOLE_NONE},
        {"/a/C/", CONSOLE_NONE},
        {"/x/a/c/", CONSOLE_NONE},
        {"*", CONSOLE_NONE},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        size_t len = strlen(rows[i].rest);
        char *data = mk_test_guarded(rows[i].rest, len);
        assert_int_equal(console_path_find(console_path_trim(MK_STR("/a/c/")), mk_str(data, len)), rows[i].view);
        assert_int_equal(console_path_find(console_path_trim(MK_STR("/a/c")), mk_str(data, len)), rows[i].view);
        assert_int_equal(console_path_find(MK_STR(""), mk_str(data, len)), CONSOLE_NONE);
        mk_test_unguard(data, len);
    }
}

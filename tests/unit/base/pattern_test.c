// SPDX-License-Identifier: Apache-2.0
/*
 * Patterns: what each kind matches and what not, and that no pattern is slow.
 */
#include "testing.h"

#include <monkey/pattern.h>

#include <errno.h>

static const struct {
    const char *pattern, *path;
    bool matches;
} cases[] = {
    {"=/a", "/a", true},
    {"=/a", "/a/", false},
    {"=/a", "/ab", false},
    {"=/*", "/*", true},
    {"=/*", "/x", false},
    {"/", "/", true},
    {"/", "/anything/at/all", true},
    {"/a", "/a", true},
    {"/a", "/a/", true},
    {"/a", "/a/b", true},
    {"/a", "/ab", false},
    {"/a", "/", false},
    {"/a/", "/a/", true},
    {"/a/", "/a/b", true},
    {"/a/", "/a", false},
    {"*.css", "/style.css", true},
    {"*.css", "/deep/er/style.css", true},
    {"*.css", "/style.css.map", false},
    {"*.css", "/style.css/x", false},
    {"*.css", "/.css", true},
    {"?.txt", "/a.txt", true},
    {"?.txt", "/ab.txt", false},
    {"?.txt", "/.txt", false},
    {"*", "/x", true},
    {"*", "/", true},
    {"*a*b*", "/xaxxbx", true},
    {"*a*b*", "/xbxxax", false},
    {"/img/*.png", "/img/a.png", true},
    {"/img/*.png", "/img/sub/a.png", false},
    {"/img/**.png", "/img/sub/a.png", true},
    {"/img/**.png", "/img/a.png", true},
    {"/img/**", "/img/", true},
    {"/img/**", "/img", false},
    {"/*/b", "/a/b", true},
    {"/*/b", "/a/a/b", false},
    {"/*/b", "//b", true},
    {"/**/b", "/a/a/b", true},
    {"/**/b/*.c", "/x/b/y/b/z.c", true},
    {"/**/b/*.c", "/x/b/y/z.c", false},
    {"**/x", "/a/x", true},
    {"/a?c", "/abc", true},
    {"/a?c", "/a/c", false},
};

static void test_matches(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct mk_pattern pattern;
        struct mk_buf error;
        char storage[100];
        mk_buf_init_fixed(&error, storage, sizeof(storage));
        size_t n = strlen(cases[i].pattern), m = strlen(cases[i].path);
        char *text = mk_test_guarded(cases[i].pattern, n), *path = mk_test_guarded(cases[i].path, m);
        assert_int_equal(mk_pattern_parse(&pattern, mk_str(text, n), &error), 0);
        if (mk_pattern_match(&pattern, mk_str(path, m)) != cases[i].matches)
            fail_msg("%s and %s", cases[i].pattern, cases[i].path);
        mk_test_unguard(text, n);
        mk_test_unguard(path, m);
    }
}

static void test_refuses(void **state)
{
    static const char *const bad[] = {"", "=", "=a", "plain", "a/b", "a/*.c"};
    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct mk_pattern pattern;
        struct mk_buf error;
        char storage[100];
        mk_buf_init_fixed(&error, storage, sizeof(storage));
        assert_int_equal(mk_pattern_parse(&pattern, mk_str_c(bad[i]), &error), -EINVAL);
        assert_true(error.len > 10);
    }
}

static void test_rest(void **state)
{
    static const struct {
        const char *pattern, *path, *rest;
    } rests[] = {
        {"/a", "/a", ""},     {"/a", "/a/", ""}, {"/a", "/a/b/c", "b/c"}, {"/a/", "/a/b", "b"},
        {"/", "/x/y", "x/y"}, {"=/a", "/a", ""}, {"*.c", "/x.c", ""},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rests); i++) {
        struct mk_pattern pattern;
        struct mk_buf error;
        char storage[100];
        mk_buf_init_fixed(&error, storage, sizeof(storage));
        assert_int_equal(mk_pattern_parse(&pattern, mk_str_c(rests[i].pattern), &error), 0);
        assert_str_equal(mk_pattern_rest(&pattern, mk_str_c(rests[i].path)), rests[i].rest);
    }
}

/* A naive matcher takes ages for these. */
static void test_is_never_slow(void **state)
{
    static char glob[MK_PATTERN_GLOB_MAX + 1], path[20001];
    struct mk_pattern pattern;
    struct mk_buf error = {0};
    (void)state;
    for (size_t i = 0; i + 2 < sizeof(glob); i += 2)
        memcpy(glob + i, i ? "*a" : "**", 2);
    glob[sizeof(glob) - 2] = 'b'; /* which never comes */
    memset(path, 'a', sizeof(path) - 1);
    path[0] = '/';
    assert_int_equal(mk_pattern_parse(&pattern, mk_str_c(glob), &error), 0);
    assert_false(mk_pattern_match(&pattern, mk_str_c(path)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matches),
        cmocka_unit_test(test_refuses),
        cmocka_unit_test(test_rest),
        cmocka_unit_test(test_is_never_slow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

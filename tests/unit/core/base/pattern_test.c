// SPDX-License-Identifier: Apache-2.0
/*
 * Patterns: what each kind matches and what not, and that no pattern is slow.
 */
#include "testing.h"

#include <monkey/base/pattern.h>

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
    {"/a?=", "/ab=", true},
    {"/v1?x.css", "/v1.x.css", true},
};

/* Whether the first of two leaves nothing to the second. */
static const struct {
    const char *first, *later;
    bool covers;
} covers[] = {
    {"=/a", "=/a", true},
    {"=/a", "=/b", false},
#ifdef MK_REGEX
    {"~^/a", "~^/a", true},
    {"~*^/a", "~*^/a", true},
    {"~*^/a", "~^/a", true},
    {"~^/a", "~*^/a", false},
#endif
    {"=/a", "/a", false},
    {"/a", "=/a", true},
    {"/a", "=/a/b", true},
    {"/a", "=/ab", false},
    {"/a/", "=/a", false},
    {"/a", "/a", true},
    {"/a", "/a/b", true},
    {"/a", "/a/", true},
    {"/a", "/ab", false},
    {"/a/b", "/a", false},
    {"/a/", "/a", false},
    {"/a/", "/a/b", true},
    {"/", "=/x", true},
    {"/", "/x", true},
    {"/", "*.css", true},
    {"/", "**/x", true},
    {"/", "/*/x", true},
    {"/a", "/a/*.css", true},
    {"/a", "/a*", false},
    {"/a", "/a?", false},
    {"/a/", "/a/?", true},
    {"/a", "/a/**", true},
    {"/a", "*.css", false},
    {"/a/**", "/a/", true},
    {"/a/**", "/a", false},
    {"/a**", "/a", true},
    {"/a**", "/ab/c", true},
    {"/a*", "/a", false},
    {"/a/*", "/a/?.c", true},
    {"/a/*", "/a/**.c", false},
    {"/a/**", "/a/*/b", true},
    {"/*/b", "/?x*/b", true},
    {"/?x/b", "/*/b", false},
    {"/*.c", "=/x.c", true},
    {"/*.c", "=/x.h", false},
    {"/**.css", "*.css", true},
    {"/*.css", "*.css", false},
    {"*.css", "*.min.css", true},
    {"*.min.css", "*.css", false},
    {"*.css", "/a/*.css", true},
    {"*.css", "/a/**.css", true},
    {"a*.css", "/a/a**.css", false},
    {"*.css", "/a/*.css/x", false},
    {"*.css", "/a.css", false},
    {"*", "/a", true},
    {"*", "*.css", true},
    {"**", "/*/x", true},
    {"/**", "*.css", true},
    {"/**", "/", true},
    {"/*", "/", false},
    {"/**/", "/", false},
    {"?", "/a", false},
};

TEST(matches)
{
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct mk_pattern pattern;
        struct mk_buf error;
        char storage[100];
        mk_buf_init_fixed(&error, storage, sizeof(storage));
        size_t n = strlen(cases[i].pattern), m = strlen(cases[i].path);
        char *text = mk_test_guarded(cases[i].pattern, n), *path = mk_test_guarded(cases[i].path, m);
        assert_int_equal(mk_pattern_parse(&pattern, mk_str(text, n), NULL, &error), 0);
        if (mk_pattern_match(&pattern, mk_str(path, m)) != cases[i].matches)
            fail_msg("%s and %s", cases[i].pattern, cases[i].path);
        mk_test_unguard(text, n);
        mk_test_unguard(path, m);
    }
}

TEST(refuses)
{
    static const char *const bad[] = {"",      "=",       "=a",    "plain",      "a/b",
                                      "a/*.c", "~^admin", "~*^a+", "*.{css,js}", "/{a,b}"};
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct mk_pattern pattern;
        struct mk_buf error;
        char storage[100];
        mk_buf_init_fixed(&error, storage, sizeof(storage));
        assert_int_equal(mk_pattern_parse(&pattern, mk_str_c(bad[i]), NULL, &error), -EINVAL);
        assert_true(error.len > 10);
    }
}

TEST(apart)
{
    static const struct {
        const char *a, *b;
        bool apart;
    } rows[] = {
        {"/a", "/b", true},          {"/a", "/ab", true},      {"/a", "/a/", false},        {"/a/b", "/a", false},
        {"=/a", "/a", false},        {"=/ab", "/a", true},     {"=/a.css", "*.css", false}, {"=/a", "*.css", true},
        {"/a/*.css", "/b/**", true}, {"/a/*", "/a/**", false}, {"/ab*", "/a", true},        {"/a*", "/a", false},
        {"/a/b*", "/a", false},      {"*.css", "*.js", false}, {"*.css", "/a", false},      {"**/a", "/b", false},
        {"/", "/a?b", false},        {"=/a", "=/b", true},     {"=/a", "=/a", false},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct mk_pattern a, b;
        MK_BUF_ON_STACK(error, 256);
        assert_int_equal(mk_pattern_parse(&a, mk_str_c(rows[i].a), NULL, &error), 0);
        assert_int_equal(mk_pattern_parse(&b, mk_str_c(rows[i].b), NULL, &error), 0);
        if (mk_pattern_is_apart(&a, &b) != rows[i].apart || mk_pattern_is_apart(&b, &a) != rows[i].apart)
            fail_msg("%s %s", rows[i].a, rows[i].b);
    }
}

TEST(refuses_queries)
{
    static const struct {
        const char *pattern;
        size_t fault;
    } rows[] = {{"/a?x=1", 2}, {"/a/*.php?id[]=*", 8}, {"=/a?x", 3}, {"=/a?", 3}, {"~^/a\\?x=", 5}, {"**/a?x-y=1", 4}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct mk_pattern pattern;
        struct mk_str text = mk_str_c(rows[i].pattern);
        MK_BUF_ON_STACK(error, 256);
        assert_int_equal(mk_pattern_parse(&pattern, text, NULL, &error), -EINVAL);
        assert_true(pattern.text.p == text.p + rows[i].fault);
        assert_non_null(memmem(error.data, error.len, "When query", 10));
    }
}

/* What no path has once it is normalized: the error says where it stands. */
TEST(refuses_what_never_matches)
{
    static const struct {
        const char *pattern;
        int at; /* -1: it is well */
    } never[] = {
        {"=//", 1},
        {"=/a//b", 3},
        {"/a//", 2},
        {"//a", 0},
        {"/./x", 0},
        {"/a/../b", 2},
        {"=/a/..", 4},
        {"/a/.", 3},
        {"/a//*.c", 2},
        {"**/.", 3},
        {"/*/../", 2},
        {"/.a", -1},
        {"/a/...", -1},
        {"/a./..b/", -1},
        {"/?./x", -1},
        {"*..", -1},
        {"/a.", -1},
        {"=/", -1},
        {"/", -1},
        {"/*/.*", -1},
        {"/**", -1},
        /* what only regular expressions have */
        {"/cgi-bin/.*\\.cgi", 11},
        {"/(a|b)/", 3},
        {"/a$", 2},
        {"/a[0-9]*", 2},
        {"/^a", 1},
        {"*.php$", 5},
        {"/$a", -1},
        {"=/a|b$", -1},
        {"/c++(1).zip", -1},
    };
    for (size_t i = 0; i < COUNT(never); i++) {
        struct mk_pattern pattern;
        struct mk_buf error;
        char storage[100];
        mk_buf_init_fixed(&error, storage, sizeof(storage));
        size_t n = strlen(never[i].pattern);
        char *text = mk_test_guarded(never[i].pattern, n);
        int r = mk_pattern_parse(&pattern, mk_str(text, n), NULL, &error);
        if (r != (never[i].at < 0 ? 0 : -EINVAL) || (r < 0 && pattern.text.p != text + never[i].at))
            fail_msg("%s: %d at %td", never[i].pattern, r, pattern.text.p - text);
        assert_true(r == 0 || pattern.text.p + pattern.text.len == text + n);
        mk_test_unguard(text, n);
    }
}

TEST(rest)
{
    static const struct {
        const char *pattern, *path, *rest;
    } rests[] = {
        {"/a", "/a", ""},     {"/a", "/a/", ""}, {"/a", "/a/b/c", "b/c"}, {"/a/", "/a/b", "b"},
        {"/", "/x/y", "x/y"}, {"=/a", "/a", ""}, {"*.c", "/x.c", ""},
    };
    for (size_t i = 0; i < COUNT(rests); i++) {
        struct mk_pattern pattern;
        struct mk_buf error;
        char storage[100];
        mk_buf_init_fixed(&error, storage, sizeof(storage));
        assert_int_equal(mk_pattern_parse(&pattern, mk_str_c(rests[i].pattern), NULL, &error), 0);
        assert_str_equal(mk_pattern_rest(&pattern, mk_str_c(rests[i].path)), rests[i].rest);
    }
}

static void parse(struct mk_pattern *pattern, const char *text, struct mk_arena *arena)
{
    struct mk_buf error;
    char storage[100];
    mk_buf_init_fixed(&error, storage, sizeof(storage));
    assert_int_equal(mk_pattern_parse(pattern, mk_str_c(text), arena, &error), 0);
}

TEST(covers)
{
    struct mk_arena arena;
    mk_arena_init(&arena, NULL, 1 << 20, NULL, 0);
    for (size_t i = 0; i < COUNT(covers); i++) {
        struct mk_pattern first, later;
        parse(&first, covers[i].first, &arena);
        parse(&later, covers[i].later, &arena);
        if (mk_pattern_covers(&first, &later) != covers[i].covers)
            fail_msg("%s before %s", covers[i].first, covers[i].later);
    }
    mk_arena_release(&arena);
}

/* The longest texts that there may be: what does not fit into its storage is not known. */
TEST(covers_long_ones)
{
    static char prefix[4000], glob[MK_PATTERN_GLOB_MAX + 1];
    struct mk_pattern long_prefix, long_glob, short_prefix;
    memset(prefix, 'a', sizeof(prefix) - 1);
    memset(glob, '*', sizeof(glob) - 1);
    prefix[0] = glob[0] = '/';
    glob[1] = 'a';
    parse(&long_prefix, prefix, NULL);
    parse(&long_glob, glob, NULL);
    parse(&short_prefix, "/a", NULL);
    assert_true(mk_pattern_covers(&long_glob, &short_prefix));
    assert_false(mk_pattern_covers(&long_glob, &long_prefix));
    assert_true(mk_pattern_covers(&long_prefix, &long_prefix));
    assert_false(mk_pattern_covers(&short_prefix, &long_glob));
}

#ifdef MK_REGEX

static const struct {
    const char *text;
    bool covers;
} globs[] = {{"*", true}, {"**", true}, {"/**", true}, {"**/**", true}, {"/*", false}, {"/**/", false}, {"*.c", false}};

TEST(expressions)
{
    struct mk_pattern pattern, same, other, exact, root, glob;
    struct mk_str groups[MK_PATTERN_GROUPS];
    struct mk_arena arena;
    mk_arena_init(&arena, NULL, 10000, NULL, 0);
    parse(&pattern, "~^/a/([0-9]+)$", &arena);
    parse(&same, "~^/a/([0-9]+)$", &arena);
    parse(&other, "~^/a", &arena);
    parse(&exact, "=/a/12", NULL);
    parse(&root, "/", NULL);
    assert_true(mk_pattern_match(&pattern, MK_STR("/a/12")));
    assert_false(mk_pattern_match(&pattern, MK_STR("/a/12/")));
    assert_true(mk_pattern_capture(&pattern, MK_STR("/a/12"), groups));
    assert_str_equal(groups[1], "12");
    assert_str_equal(groups[2], "");
    assert_true(mk_pattern_capture(&exact, MK_STR("/a/12"), groups));
    assert_str_equal(groups[0], "");
    assert_str_equal(mk_pattern_rest(&other, MK_STR("/a/b")), "");
    assert_true(mk_pattern_covers(&pattern, &same) && mk_pattern_covers(&pattern, &exact));
    assert_true(mk_pattern_covers(&root, &pattern));
    assert_false(mk_pattern_covers(&other, &pattern) || mk_pattern_covers(&pattern, &root));
    for (size_t i = 0; i < COUNT(globs); i++) {
        parse(&glob, globs[i].text, NULL);
        if (mk_pattern_covers(&glob, &pattern) != globs[i].covers)
            fail_msg("%s before an expression", globs[i].text);
    }
    mk_arena_release(&arena);
}

TEST(tells_where_an_expression_is_wrong)
{
    struct mk_pattern pattern;
    struct mk_str text = MK_STR("~*^/a(b");
    struct mk_buf error;
    struct mk_arena arena;
    char storage[200];
    mk_arena_init(&arena, NULL, 10000, NULL, 0);
    mk_buf_init_fixed(&error, storage, sizeof(storage));
    assert_int_equal(mk_pattern_parse(&pattern, text, &arena, &error), -EINVAL);
    assert_ptr_equal(pattern.text.p, text.p + 6);
    mk_arena_release(&arena);
}

#else

TEST(expressions)
{
    struct mk_pattern pattern;
    struct mk_buf error;
    char storage[200];
    mk_buf_init_fixed(&error, storage, sizeof(storage));
    assert_int_equal(mk_pattern_parse(&pattern, MK_STR("~a"), NULL, &error), -EINVAL);
    assert_non_null(strstr(mk_buf_cstr(&error), "no regular expressions"));
}

#endif

/* What is right elsewhere: the place of the mistake, and what to write. */
TEST(tells_what_to_write)
{
    static const struct {
        const char *pattern, *said;
        size_t at;
    } wrong[] = {
        {"/my%20files", "write \"/my files\"", 3},
        {"=/a%2Db", "write \"=/a-b\"", 3},
        {"*.%70hp", "write \"*.php\"", 2},
        {"/a/%c3%a4/**", "write \"/a/\xc3\xa4/**\"", 3},
        {"/a%2fb", "write \"/a%2Fb\"", 2},
        {"/a%2Fb%20c", "write \"/a%2Fb c\"", 6},
        {"~^/a%20b$", "write \"~^/a b$\"", 4},
        {"~ \\.php$", "write ~\\.php$", 1},
        {"~*  \\.(png|gif)$", "write ~*\\.(png|gif)$", 2},
        {"~\t^/a", "write ~^/a", 1},
        {"~", "right behind ~", 1},
        {"~*", "right behind ~", 2},
    };
    static const char *const right[] = {"/a%2Fb", "/100%", "/a%zz", "/%4", "=/a%"};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        struct mk_pattern pattern;
        MK_BUF_ON_STACK(error, 200);
        struct mk_str text = mk_str_c(wrong[i].pattern);
        assert_int_equal(mk_pattern_parse(&pattern, text, NULL, &error), -EINVAL);
        if (!strstr(mk_buf_cstr(&error), wrong[i].said) || pattern.text.p != text.p + wrong[i].at)
            fail_msg("%s: %s at %zd", wrong[i].pattern, error.data, pattern.text.p - text.p);
    }
    for (size_t i = 0; i < COUNT(right); i++) {
        struct mk_pattern pattern;
        MK_BUF_ON_STACK(error, 200);
        assert_int_equal(mk_pattern_parse(&pattern, mk_str_c(right[i]), NULL, &error), 0);
    }
}

/* A naive matcher takes ages for these. */
TEST(is_never_slow)
{
    static char glob[MK_PATTERN_GLOB_MAX + 1], path[20001];
    struct mk_pattern pattern;
    struct mk_buf error = {0};
    for (size_t i = 0; i + 2 < sizeof(glob); i += 2)
        memcpy(glob + i, i ? "*a" : "**", 2);
    glob[sizeof(glob) - 2] = 'b'; /* which never comes */
    memset(path, 'a', sizeof(path) - 1);
    path[0] = '/';
    assert_int_equal(mk_pattern_parse(&pattern, mk_str_c(glob), NULL, &error), 0);
    assert_false(mk_pattern_match(&pattern, mk_str_c(path)));
}

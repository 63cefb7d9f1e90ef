// SPDX-License-Identifier: Apache-2.0
/* Indexes of patterns: which text begins all paths of a pattern, and that no pattern that matches is left out. */
#include "base/pattern_index.h"

#include "arena.h"

static struct mk_pattern parse(const char *text)
{
    struct mk_pattern pattern;
    MK_BUF_ON_STACK(error, 256);
    if (mk_pattern_parse(&pattern, mk_str_c(text), &arena, &error) != 0)
        fail_msg("%s: %s", text, mk_buf_cstr(&error));
    return pattern;
}

static const struct {
    const char *pattern, *head;
} heads[] = {
    {"=/a/b", "/a/b"},
    {"/a", "/a"},
    {"/a/", "/a/"},
    {"*.css", ""},
    {"/a/*.css", "/a/"},
    {"/a?c/d", "/a"},
    {"**/x", ""},
#ifdef MK_REGEX
    {"~^/a/b$", "/a/b"},
    {"~^/a/item-[0-9]+", "/a/item-"},
    {"~^/a.b", "/a"},
    {"~^/a\\.php$", "/a"},
    {"~^/ab?", "/a"},
    {"~^/ab*", "/a"},
    {"~^/ab{2}", "/a"},
    {"~^/ab+", "/ab"},
    {"~^(/a)+", ""},
    {"~/a", ""},
    {"~*^/a", ""},
    {"~^", ""},
    {"~a^/b", ""},
    /* alternatives */
    {"~^/a/(x|y)/z", "/a/"},
    {"~^/a/(?:x|y)/z", "/a/"},
    {"~^/a|/b", ""},
    {"~^/a|^/b", ""},
    {"~^/a(x)|y", ""},
    {"~^/a(\\(|x)|y", ""},
    {"~^/a(\\)|x)", "/a"},
    {"~^/a[(]|y", ""},
    {"~^/a[](]|y", ""},
    {"~^/a[[:alpha:](]|y", ""},
    {"~^/a\\Q(\\E|y", ""},
    {"~^/a(?#()|y", ""},
    {"~^/a(?i)b|y", ""},
    {"~^/a\\||y", ""},
    {"~^/a\\|y", "/a"},
    {"~^/a\\c(|/y", ""},
    {"~^/a\\x{28}|y", ""},
    {"~^/a(\\d|\\w)", "/a"},
#endif
};

TEST(heads, mk_test_arena_open, mk_test_arena_close)
{
    for (size_t i = 0; i < COUNT(heads); i++) {
        struct mk_pattern pattern = parse(heads[i].pattern);
        struct mk_str head = mk__pattern_index_head(&pattern);
        if (!mk_str_eq(head, mk_str_c(heads[i].head)))
            fail_msg("%s: \"%.*s\"", heads[i].pattern, MK_STR_ARG(head));
    }
}

/* ── random patterns and paths of few letters ── */

enum { PATTERNS = 200, PATHS = 2000, ROUNDS = 10 };

static uint32_t seed = 1;

static uint32_t choose(uint32_t n)
{
    seed = seed * 1664525 + 1013904223;
    return (seed >> 16) % n;
}

static void add_path(struct mk_buf *out, unsigned segments, const char *const *parts, unsigned n_parts)
{
    for (unsigned i = 0; i < segments; i++) {
        mk_buf_addc(out, '/');
        for (unsigned k = choose(3) + (i + 1 < segments); k; k--)
            mk_buf_adds(out, mk_str_c(parts[choose(n_parts)]));
    }
}

static struct mk_pattern make_pattern(void)
{
    static const char *const letters[] = {"a", "b", "ab"}, *const globs[] = {"a", "b", "*", "?", "**"};
#ifdef MK_REGEX
    static const char *const items[] = {"a",     "b",       "a?",      "b*",      "[ab]", "(a|b)",   ".",     "a+",
                                        "\\141", "\\x{62}", "(?:a|b)", "\\Qa\\E", "a|/b", "\\c!|/a", "\\.|/b"};
    enum { KINDS = 6 };
#else
    enum { KINDS = 4 };
#endif
    for (;;) {
        struct mk_pattern pattern;
        char *text = mk_arena_alloc(&arena, 128);
        struct mk_buf out, error;
        assert_non_null(text);
        mk_buf_init_fixed(&out, text, 128);
        switch (choose(KINDS)) {
        case 0:
            mk_buf_addc(&out, '=');
            add_path(&out, 1 + choose(3), letters, COUNT(letters));
            break;
        case 1:
            add_path(&out, 1 + choose(3), letters, COUNT(letters));
            break;
        case 2:
            add_path(&out, 1 + choose(3), globs, COUNT(globs));
            break;
        case 3:
            mk_buf_adds(&out, mk_str_c(globs[choose(3)]));
            mk_buf_adds(&out, mk_str_c("*a"));
            break;
#ifdef MK_REGEX
        case 4:
            mk_buf_adds(&out, MK_STR("~^"));
            add_path(&out, 1 + choose(3), items, COUNT(items));
            break;
        default:
            mk_buf_adds(&out, mk_str_c(choose(2) ? "~" : "~*^/A|"));
            add_path(&out, 1, items, COUNT(items));
#endif
        }
        mk_buf_init_fixed(&error, (char[256]){0}, 256);
        if (mk_pattern_parse(&pattern, mk_buf_str(&out), &arena, &error) == 0)
            return pattern;
    }
}

static const struct mk_pattern *get_pattern(const void *all, uint32_t number)
{
    return &((const struct mk_pattern *)all)[number];
}

static void compare(const struct mk_pattern_index *index, const struct mk_pattern *all, struct mk_str path)
{
    uint32_t next = mk_pattern_index_next(index, path, 0);
    for (uint32_t i = 0; i < PATTERNS; i++) {
        if (i == next)
            next = mk_pattern_index_next(index, path, i + 1);
        else if (mk_pattern_match(&all[i], path) != 0)
            fail_msg("%.*s matches %.*s", MK_STR_ARG(all[i].text), MK_STR_ARG(path));
    }
    assert_int_equal(next, UINT32_MAX);
}

TEST(nothing_is_left_out)
{
    static const char *const letters[] = {"a", "b"};
    static struct mk_pattern patterns[PATTERNS];
    for (unsigned round = 0; round < ROUNDS; round++) {
        mk_test_arena_open(NULL);
        for (unsigned i = 0; i < PATTERNS; i++)
            patterns[i] = make_pattern();
        const struct mk_pattern_index *index = mk_pattern_index_new(get_pattern, patterns, PATTERNS, &arena);
        assert_non_null(index);
        for (unsigned i = 0; i < PATHS; i++) {
            MK_BUF_ON_STACK(path, 128);
            add_path(&path, 1 + choose(3), letters, COUNT(letters));
            compare(index, patterns, mk_buf_str(&path));
        }
        mk_test_arena_close(NULL);
    }
}

/* Only those are found whose paths begin as this one: of thousands of rules a few are compared. */
TEST(others_are_left_out, mk_test_arena_open, mk_test_arena_close)
{
    static const char *const texts[] = {"/b", "=/a", "/a/b", "*.x", "/a", "/aa", "/", "/a/*", "/a"};
    static const struct {
        const char *path, *found;
    } rows[] = {
        {"/", "36"}, {"/a", "13468"}, {"/a/b", "1234678"}, {"/b/x", "036"}, {"/ab", "13468"}, {"/c", "36"}, {"*", "3"},
    };
    struct mk_pattern patterns[MK__PATTERN_INDEX_MIN];
    for (unsigned i = 0; i < MK__PATTERN_INDEX_MIN; i++)
        patterns[i] = parse(i < COUNT(texts) ? texts[i] : "=/other");
    const struct mk_pattern_index *index = mk_pattern_index_new(get_pattern, patterns, MK__PATTERN_INDEX_MIN, &arena);
    for (size_t i = 0; i < COUNT(rows); i++) {
        MK_BUF_ON_STACK(found, 32);
        struct mk_str path = mk_str_c(rows[i].path);
        for (uint32_t k = 0; (k = mk_pattern_index_next(index, path, k)) != UINT32_MAX; k++)
            mk_buf_addf(&found, "%u", k);
        assert_string_equal(mk_buf_cstr(&found), rows[i].found);
    }
}

/* A few are not indexed. */
TEST(few_are_all_found, mk_test_arena_open, mk_test_arena_close)
{
    const struct mk_pattern patterns[] = {parse("=/a"), parse("/b")};
    const struct mk_pattern_index *index = mk_pattern_index_new(get_pattern, patterns, 2, &arena);
    assert_int_equal(mk_pattern_index_next(index, MK_STR("/c"), 0), 0);
    assert_int_equal(mk_pattern_index_next(index, MK_STR("/c"), 1), 1);
    assert_int_equal(mk_pattern_index_next(index, MK_STR("/c"), 2), UINT32_MAX);
    index = mk_pattern_index_new(get_pattern, NULL, 0, &arena);
    assert_int_equal(mk_pattern_index_next(index, MK_STR("/c"), 0), UINT32_MAX);
}

/* A pattern with an empty text is of a rule without a path. */
TEST(covers_are_found, mk_test_arena_open, mk_test_arena_close)
{
    struct mk_pattern patterns[MK__PATTERN_INDEX_MIN] = {{.text = MK_STR_NONE}};
    for (unsigned i = 1; i < MK__PATTERN_INDEX_MIN; i++)
        patterns[i] = parse(i == 5 ? "/" : i == 6 ? "/a" : "=/other");
    const struct mk_pattern_index *index = mk_pattern_index_new(get_pattern, patterns, MK__PATTERN_INDEX_MIN, &arena);
    static const struct {
        const char *later, *found;
    } rows[] = {
        {"/a/b", "056"},  {"/b", "05"}, {"*.x", "05"},
#ifdef MK_REGEX
        {"~^/a/", "056"}, {"~x", "05"},
#endif
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        MK_BUF_ON_STACK(found, 32);
        const struct mk_pattern later = parse(rows[i].later);
        for (uint32_t k = 0; (k = mk_pattern_index_next_cover(index, &later, k)) != UINT32_MAX; k++)
            mk_buf_addf(&found, "%u", k);
        assert_string_equal(mk_buf_cstr(&found), rows[i].found);
    }
    assert_int_equal(mk_pattern_index_next_cover(index, &patterns[0], 0), 0);
}

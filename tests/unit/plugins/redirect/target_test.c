// SPDX-License-Identifier: Apache-2.0
/* Targets: what they may be, and what captures can and cannot do to them; and the paths that rewrites make. */
#include "plugins/redirect/redirect.h"

#include "arena.h"
#include "conf/internal.h"

#include <errno.h>

static char reason[512];
static size_t fault;

static int parse(mk_conf_parse_fn fn, struct target *to, const char *text)
{
    struct mk_str word = mk_str_c(text);
    static const struct mk__conf_source file = {.name = "f"};
    const struct mk__conf_origin origin = {.source = &file, .line = 1};
    struct mk_conf_value value = {.text = word, .words = &word, .n = 1, .origin = &origin, .fault = &fault};
    struct mk_buf error;
    mk_buf_init_fixed(&error, reason, sizeof(reason));
    fault = SIZE_MAX;
    *to = (struct target){.text = MK_STR_NONE};
    int err = fn(&value, to, &arena, &error);
    mk_buf_cstr(&error);
    return err;
}

TEST(paths, mk_test_arena_open, mk_test_arena_close)
{
    static const struct {
        const char *text;
        size_t fault;
        const char *reason;
    } cases[] = {
        {"x", 0, "a path of this host"},
        {"//x", 0, "a path of this host"},
        {"https://example.org/", 0, "a path of this host"},
        {"/a#b", 2, "fragments"},
        {"/a/../b", 3, "segment"},
        {"/a/%2e%2E/b", 3, "segment"},
        {"/..", 1, "segment"},
        {"/a/.?b", 3, "segment"},
        {"/a/%2", 3, "hexadecimal"},
        {"/a/b%", 4, "hexadecimal"},
        {"/a%2fb", 2, "encoded slash"},
        {"/a%00", 2, "NUL"},
        {"/a b", 2, "blanks"},
        {"/a\\b", 2, "backslashes"},
    };
    struct target to;
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(parse(target_parse_path, &to, cases[i].text), -EINVAL);
        if (fault != cases[i].fault || !strstr(reason, cases[i].reason))
            fail_msg("%s: %s at %zu", cases[i].text, reason, fault);
    }
    static const char *const right[] = {"/", "/a", "/a/", "/a//b", "/a?b=..", "/a/...", "/$1?x=$2", "/%c3%a4", "/?"};
    for (size_t i = 0; i < COUNT(right); i++) {
        assert_int_equal(parse(target_parse_path, &to, right[i]), 0);
        assert_str_equal(to.text, right[i]);
        assert_str_equal(to.place, "f:1");
    }
}

struct built {
    char path[4096], query[4096];
};

/* Applies a rule of an expression, whose groups are taken from `path`. */
static void build(struct built *b, const char *match, const char *to, const char *path, const char *query, bool keep)
{
    struct rewrite_rule rule = {.base.keep_path = keep, .keep_query = keep};
    struct mk_str groups[MK_PATTERN_GROUPS];
    struct mk_buf error, out_path, out_query;
    bool has_query;
    mk_buf_init_fixed(&error, reason, sizeof(reason));
    assert_int_equal(mk_pattern_parse(&rule.base.match, mk_str_c(match), &arena, &error), 0);
    assert_int_equal(parse(target_parse_path, &rule.base.to, to), 0);
    assert_int_equal(mk_pattern_capture(&rule.base.match, mk_str_c(path), groups), 1);
    mk_buf_init_fixed(&out_path, b->path, sizeof(b->path));
    mk_buf_init_fixed(&out_query, b->query, sizeof(b->query));
    rewrite_build(&rule, mk_str_c(path), mk_str_c(query), &(struct target_captures){groups, false}, &out_path,
                  &out_query, &has_query);
    mk_buf_cstr(&out_path);
    mk_buf_cstr(&out_query);
    assert_true(!out_path.err && !out_query.err);
    if (!has_query)
        memcpy(b->query, "-", 2);
}

TEST(rewrites, mk_test_arena_open, mk_test_arena_close)
{
    static const struct {
        const char *match, *to, *path, *query;
        bool keep;
        const char *new_path, *new_query;
    } cases[] = {
        {"=/a", "/b", "/a", NULL, true, "/b", "-"},
        {"=/a", "/b", "/a", "x=1", true, "/b", "x=1"},
        {"=/a", "/b", "/a", "", true, "/b", ""},
        {"=/a", "/b", "/a", "x=1", false, "/b", "-"},
        {"=/a", "/b?y=2", "/a", "x=1", true, "/b", "y=2&x=1"},
        {"=/a", "/b?y=2", "/a", "", true, "/b", "y=2"},
        {"=/a", "/b?y=2", "/a", "x=1", false, "/b", "y=2"},
        {"/a", "/b", "/a/c d", NULL, true, "/b/c%20d", "-"},
        {"/a", "/b/?q", "/a/c?d", NULL, true, "/b/c%3Fd", "q"},
        {"/a", "/b", "/a/c", NULL, false, "/b", "-"},
        {"/", "/b", "/c", NULL, true, "/b/c", "-"},
        {"~^/i/(.*)$", "/x?id=$1", "/i/7&y=8#z", NULL, true, "/x", "id=7%26y%3D8%23z"},
        {"~^/i/(.*)$", "/x/$1", "/i/a?b\r\n%2e", NULL, true, "/x/a%3Fb%0D%0A%252e", "-"},
        {"~^/i(.*)$", "/$1", "/i/evil.example", NULL, true, "/evil.example", "-"},
        {"~^/(.*)$", "/x?p=$0", "/a+b;c", "z", true, "/x", "p=/a%2Bb%3Bc&z"},
    };
    struct built b;
    for (size_t i = 0; i < COUNT(cases); i++) {
        build(&b, cases[i].match, cases[i].to, cases[i].path, cases[i].query, cases[i].keep);
        assert_string_equal(b.path, cases[i].new_path);
        assert_string_equal(b.query, cases[i].new_query);
    }
}

TEST(hosts, mk_test_arena_open, mk_test_arena_close)
{
    struct target to;
    assert_int_equal(parse(target_parse_any, &to, "https://example.org:8080/a"), 0);
    assert_int_equal(target_find_host_end(to.text), 24);
    assert_int_equal(parse(target_parse_any, &to, "///a/b"), 0);
    assert_false(target_is_path(to.text));
    assert_int_equal(target_find_host_end(to.text), 4);
    assert_int_equal(parse(target_parse_host, &to, "/$1"), -EINVAL);
    assert_null(to.text.p);
    assert_int_equal(parse(target_parse_any, &to, "example.org"), -EINVAL);
}

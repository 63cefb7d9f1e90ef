// SPDX-License-Identifier: Apache-2.0
/* Patterns, and which of them gets a path. */
#include "testing.h"

#include <errno.h>

#include <monkey/kit/routes.h>

struct fixture {
    struct mk_arena arena;
    struct mk_routes routes;
};

static void open_fixture(struct fixture *w)
{
    *w = (struct fixture){0};
    mk_arena_init(&w->arena, NULL, 4 << 20, NULL, 0);
}

static struct mk_route *add(struct fixture *w, const char *methods, const char *pattern)
{
    const char *problem = NULL;
    mk_methods set = strcmp(methods, "ANY") == 0 ? MK_ROUTES_ANY : mk_routes_read_methods(mk_str_c(methods));
    struct mk_route *r = mk_arena_zalloc(&w->arena, sizeof(*r));
    assert_non_null(r);
    int err = mk_routes_add(&w->routes, &w->arena, set, mk_str_c(pattern), r, &problem);
    assert_true((err < 0) == (problem != NULL));
    return err < 0 ? NULL : r;
}

/* ── patterns ── */

static const char *const good[] = {
    "/",   "/a",  "/a/",       "/:a",  "/:a/",  "/*a",  "/a/:b/*c_1", "/a:b",   "/a*b/c",
    "/:A", "/:_", "/\xc3\xbc", "/a b", "/100%", "/%zz", "/...",       "/a/1:2",
};

static const char *const bad[] = {
    "",      "a",   "*",      ":a",     "//",     "/a//b",   "/a//",   "/.",     "/../a", "/a/.",
    "/a/..", "/:",  "/*",     "/*/",    "/*a/",   "/*a/b",   "/:a/:a", "/:a/*a", "/:1",   "/:a-b",
    "/a?b",  "/a#", "/a\x01", "/a\x7f", "/a%20b", "/%C3%bc", "/:a b",  "/:a:b",
};

TEST(patterns)
{
    struct fixture w;
    for (size_t i = 0; i < COUNT(good) + COUNT(bad); i++) {
        const char *pattern = i < COUNT(good) ? good[i] : bad[i - COUNT(good)];
        open_fixture(&w);
        bool added = add(&w, "GET", pattern);
        if (added != (i < COUNT(good)))
            fail_msg("\"%s\" was %s", pattern, added ? "added" : "refused");
        mk_arena_release(&w.arena);
    }
}

TEST(limits)
{
    char pattern[MK_ROUTES_PATTERN_BYTES_MAX + 2];
    struct fixture w;
    open_fixture(&w);
    memset(pattern, 'a', sizeof(pattern));
    pattern[0] = '/';
    pattern[MK_ROUTES_PATTERN_BYTES_MAX] = '\0';
    assert_non_null(add(&w, "GET", pattern));
    pattern[MK_ROUTES_PATTERN_BYTES_MAX] = 'a';
    pattern[MK_ROUTES_PATTERN_BYTES_MAX + 1] = '\0';
    assert_null(add(&w, "GET", pattern));
    for (int i = 0; i <= MK_ROUTES_SEGMENTS_MAX; i++)
        memcpy(pattern + 2 * i, "/a", 3);
    assert_null(add(&w, "GET", pattern));
    pattern[2 * MK_ROUTES_SEGMENTS_MAX] = '\0';
    assert_non_null(add(&w, "GET", pattern));
    mk_arena_release(&w.arena);
}

static const struct {
    const char *methods, *pattern, *again_methods, *again;
    bool is_twice;
} twice[] = {
    {"GET", "/a", "GET", "/a", true},    {"GET", "/a", "POST", "/a", false},
    {"GET", "/a", "GET", "/a/", false},  {"GET, PUT", "/a", "PUT, POST", "/a", true},
    {"GET", "/:a", "GET", "/:b", true},  {"GET", "/*a", "GET", "/*b", true},
    {"GET", "/*a", "GET", "/:a", false}, {"GET", "/:a/x", "GET", "/:b/y", false},
    {"ANY", "/a", "GET", "/a", false},   {"GET", "/a", "ANY", "/a", false},
    {"ANY", "/a", "ANY", "/a", true},    {"HEAD", "/a", "GET", "/a", false},
};

TEST(twice)
{
    struct fixture w;
    for (size_t i = 0; i < COUNT(twice); i++) {
        open_fixture(&w);
        assert_non_null(add(&w, twice[i].methods, twice[i].pattern));
        if ((add(&w, twice[i].again_methods, twice[i].again) == NULL) != twice[i].is_twice)
            fail_msg("%s %s and %s %s", twice[i].methods, twice[i].pattern, twice[i].again_methods, twice[i].again);
        mk_arena_release(&w.arena);
    }
}

TEST(methods)
{
    char text[64];
    struct mk_buf out;
    assert_int_equal(mk_routes_read_methods(MK_STR("")), 0);
    assert_int_equal(mk_routes_read_methods(MK_STR("get")), 0);
    assert_int_equal(mk_routes_read_methods(MK_STR("GET, LOCK")), 0);
    assert_int_equal(mk_routes_read_methods(MK_STR("CONNECT")), 0);
    assert_int_equal(mk_routes_read_methods(MK_STR("POST,GET")), 1 << MK_GET | 1 << MK_POST);
    mk_buf_init_fixed(&out, text, sizeof(text));
    mk_routes_list_methods(&out, MK_ROUTES_KNOWN);
    assert_str_equal(mk_buf_str(&out), "GET, HEAD, POST, PUT, DELETE, PATCH, OPTIONS");
    mk_buf_init_fixed(&out, text, sizeof(text));
    mk_routes_list_methods(&out, MK_ROUTES_ANY);
    assert_str_equal(mk_buf_str(&out), "ANY");
    mk_buf_init_fixed(&out, text, sizeof(text));
    mk_routes_list_methods(&out, mk_routes_allow(1 << MK_GET));
    assert_str_equal(mk_buf_str(&out), "GET, HEAD, OPTIONS");
}

/* ── paths ── */

static const struct {
    const char *methods, *pattern;
} table[] = {
    {"GET", "/"},
    {"GET", "/users"},
    {"GET", "/users/:id"},
    {"GET", "/users/me"},
    {"POST, PUT", "/users/:name"},
    {"GET", "/users/:id/posts"},
    {"GET", "/users/me/mails"},
    {"GET", "/files/*path"},
    {"GET", "/files/:name/raw"},
    {"GET", "/folder/"},
    {"HEAD", "/head"},
    {"GET", "/head"},
    {"ANY", "/any"},
    {"GET", "/any"},
    {"ANY", "/deep/*rest"},
    {"GET", "/deep/a/b"},
    {"GET", "/:x/y/z"},
    {"GET", "/both"},
    {"GET", "/both/"},
};

static const struct {
    enum mk_method method;
    const char *path, *pattern; /* NULL: none */
    const char *values;         /* separated by "|" */
    bool has_slash_form;
    const char *allow;
} paths[] = {
    {MK_GET, "/", "/", "", false, ""},
    {MK_GET, "", NULL, "", true, ""},
    {MK_GET, "/users", "/users", "", false, ""},
    {MK_GET, "/users/", NULL, "", false, ""},
    {MK_GET, "/users/7", "/users/:id", "7", false, ""},
    {MK_HEAD, "/users/7", "/users/:id", "7", false, ""},
    {MK_GET, "/users/me", "/users/me", "", false, ""},
    {MK_PUT, "/users/me", "/users/:name", "me", false, ""},
    {MK_DELETE, "/users/me", NULL, "", false, "GET, POST, PUT"},
    {MK_METHOD_OTHER, "/users/me", NULL, "", false, "GET, POST, PUT"},
    {MK_GET, "/users/me/posts", "/users/:id/posts", "me", false, ""},
    {MK_GET, "/users/me/mails", "/users/me/mails", "", false, ""},
    {MK_GET, "/users/7/mails", NULL, "", false, ""},
    {MK_GET, "/files", NULL, "", true, ""},
    {MK_GET, "/files/", "/files/*path", "", false, ""},
    {MK_GET, "/files/a", "/files/*path", "a", false, ""},
    {MK_GET, "/files/a/", "/files/*path", "a/", false, ""},
    {MK_GET, "/files/a/raw", "/files/:name/raw", "a", false, ""},
    {MK_GET, "/files/a/raw/", "/files/*path", "a/raw/", false, ""},
    {MK_GET, "/files/a/b", "/files/*path", "a/b", false, ""},
    {MK_GET, "/folder", NULL, "", true, ""},
    {MK_PUT, "/folder", NULL, "", true, ""},
    {MK_GET, "/folder/", "/folder/", "", false, ""},
    {MK_HEAD, "/head", "/head", "", false, ""},
    {MK_PATCH, "/any", "/any", "", false, ""},
    {MK_METHOD_OTHER, "/any", "/any", "", false, ""},
    {MK_TRACE, "/any", NULL, "", false, "GET, HEAD, POST, PUT, DELETE, PATCH, OPTIONS"},
    {MK_CONNECT, "/any", NULL, "", false, "GET, HEAD, POST, PUT, DELETE, PATCH, OPTIONS"},
    {MK_GET, "/deep/a/b", "/deep/a/b", "", false, ""},
    {MK_POST, "/deep/a/b", "/deep/*rest", "a/b", false, ""},
    {MK_GET, "/deep/a/c", "/deep/*rest", "a/c", false, ""},
    {MK_GET, "/users/y/z", "/:x/y/z", "users", false, ""},
    {MK_GET, "/both", "/both", "", false, ""},
    {MK_POST, "/both", NULL, "", false, "GET"},
    {MK_GET, "/both/", "/both/", "", false, ""},
    {MK_GET, "/User", NULL, "", false, ""},
    {MK_GET, "/user", NULL, "", false, ""},
    {MK_GET, "/userss", NULL, "", false, ""},
    {MK_GET, "//y/z", NULL, "", false, ""}, /* a wildcard does not match an empty segment */
    {MK_GET, "/users//", NULL, "", false, ""},
};

static struct mk_str join_values(const struct mk_route_match *m, struct mk_buf *out)
{
    for (unsigned i = 0; i < m->n; i++)
        mk_buf_addf(out, "%s%.*s", i ? "|" : "", MK_STR_ARG(m->values[i]));
    return mk_buf_str(out);
}

static void check_path(const struct fixture *w, size_t i)
{
    struct mk_route_match m;
    char text[128], allow[128];
    struct mk_buf values, methods;
    size_t len = strlen(paths[i].path);
    char *path = mk_test_guarded(paths[i].path, len);
    mk_buf_init_fixed(&values, text, sizeof(text));
    mk_buf_init_fixed(&methods, allow, sizeof(allow));
    bool found = mk_routes_match(&w->routes, paths[i].method, mk_str(path, len), &m);
    if (found != (paths[i].pattern != NULL) || found != (m.route != NULL))
        fail_msg("%s is %s", paths[i].path, found ? m.route->pattern.p : "not found");
    assert_true(m.has_slash_form == paths[i].has_slash_form);
    if (found) {
        assert_str_equal(m.route->pattern, paths[i].pattern);
        assert_int_equal(m.n, m.route->n);
        assert_str_equal(join_values(&m, &values), paths[i].values);
    } else {
        mk_routes_list_methods(&methods, m.allow);
        assert_str_equal(mk_buf_str(&methods), paths[i].allow);
    }
    mk_test_unguard(path, len);
}

/* The order of registration does not matter. */
TEST(paths)
{
    for (size_t shift = 0; shift < 2 * COUNT(table); shift++) {
        struct fixture w;
        open_fixture(&w);
        for (size_t i = 0; i < COUNT(table); i++) {
            size_t at = (i + shift) % COUNT(table);
            at = shift < COUNT(table) ? at : COUNT(table) - 1 - at;
            assert_non_null(add(&w, table[at].methods, table[at].pattern));
        }
        for (size_t i = 0; i < COUNT(paths); i++)
            check_path(&w, i);
        mk_arena_release(&w.arena);
    }
}

TEST(any_and_own)
{
    struct fixture w;
    struct mk_route_match m;
    open_fixture(&w);
    struct mk_route *any = add(&w, "ANY", "/a"), *get = add(&w, "GET", "/a");
    assert_true(mk_routes_match(&w.routes, MK_GET, MK_STR("/a"), &m) && m.route == get);
    assert_true(mk_routes_match(&w.routes, MK_HEAD, MK_STR("/a"), &m) && m.route == get);
    assert_true(mk_routes_match(&w.routes, MK_PUT, MK_STR("/a"), &m) && m.route == any);
    mk_arena_release(&w.arena);
}

TEST(names)
{
    struct fixture w;
    struct mk_route_match m;
    open_fixture(&w);
    add(&w, "GET", "/:a/:b/*c");
    add(&w, "PUT", "/:x/:y/*z");
    assert_true(mk_routes_match(&w.routes, MK_PUT, MK_STR("/1/2/3/4"), &m));
    assert_int_equal(m.n, 3);
    assert_str_equal(m.route->names[0], "x");
    assert_str_equal(m.route->names[2], "z");
    assert_str_equal(m.values[2], "3/4");
    mk_arena_release(&w.arena);
}

static int add_without_memory(void *ctx)
{
    struct fixture w;
    struct mk_route_match m;
    const char *problem;
    int result = 0;
    (void)ctx;
    open_fixture(&w);
    for (size_t i = 0; i < COUNT(table) && !result; i++) {
        mk_methods set =
            strcmp(table[i].methods, "ANY") == 0 ? MK_ROUTES_ANY : mk_routes_read_methods(mk_str_c(table[i].methods));
        struct mk_route *r = mk_arena_alloc(&w.arena, sizeof(*r));
        if (!r || mk_routes_add(&w.routes, &w.arena, set, mk_str_c(table[i].pattern), r, &problem) < 0)
            result = -ENOMEM;
    }
    (void)mk_routes_match(&w.routes, MK_GET, MK_STR("/users/me/posts"), &m);
    mk_arena_release(&w.arena);
    return result;
}

TEST(memory)
{
    assert_true(mk_test_failing_allocs(add_without_memory, NULL) > 0);
}

// SPDX-License-Identifier: Apache-2.0
/* Rules of the old API: prefixes, redirects and patterns. Interfaces need a service: see tests/e2e/test_duda_router.py.
 */
#include "testing.h"

#include <errno.h>

#include "duda/core/compat/map.h"

static void handle(duda_request_t *dr)
{
    (void)dr;
}

struct fixture {
    struct mk_arena arena;
    struct map map;
};

static void open_fixture(struct fixture *w)
{
    *w = (struct fixture){0};
    mk_arena_init(&w->arena, NULL, 4 << 20, NULL, 0);
}

struct path_case {
    const char *path;
    enum map_result result;
    const char *pattern; /* of MAP_FOUND */
};

static void check_paths(const struct map *map, const struct path_case *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct mk_route_match m;
        size_t len = strlen(cases[i].path);
        char *path = mk_test_guarded(cases[i].path, len);
        enum map_result result = map_match(map, mk_str(path, len), false, &m);
        if (result != cases[i].result)
            fail_msg("\"%s\" is %d", cases[i].path, result);
        if (result == MAP_FOUND)
            assert_str_equal(m.route->pattern, cases[i].pattern);
        mk_test_unguard(path, len);
    }
}

TEST(static_paths_are_prefixes)
{
    static const char *const statics[] = {"/apples", "/a", "/pie/"};
    static const struct path_case cases[] = {
        {"/apples", MAP_FOUND, "/apples"}, {"/apples/", MAP_FOUND, "/apples"}, {"/applesauce", MAP_FOUND, "/apples"},
        {"/a", MAP_FOUND, "/a"},           {"/abc/d", MAP_FOUND, "/a"},        {"/pie/x", MAP_FOUND, "/pie/"},
        {"/pie", MAP_NOT_FOUND, NULL},     {"/b", MAP_NOT_FOUND, NULL},        {"/", MAP_NOT_FOUND, NULL},
        {"", MAP_NOT_FOUND, NULL},
    };
    struct fixture w;
    open_fixture(&w);
    for (size_t i = 0; i < COUNT(statics); i++)
        assert_int_equal(map_add_static(&w.map, &w.arena, mk_str_c(statics[i]), handle), 0);
    check_paths(&w.map, cases, COUNT(cases));
    mk_arena_release(&w.arena);
}

TEST(first_rule_wins)
{
    static const struct path_case cases[] = {{"/apples", MAP_FOUND, "/"}, {"", MAP_NOT_FOUND, NULL}};
    struct fixture w;
    open_fixture(&w);
    assert_int_equal(map_add_static(&w.map, &w.arena, MK_STR("/"), handle), 0);
    assert_int_equal(map_add_static(&w.map, &w.arena, MK_STR("/apples"), handle), 0);
    check_paths(&w.map, cases, COUNT(cases));
    mk_arena_release(&w.arena);
}

TEST(forced_redirect)
{
    struct mk_route_match m;
    struct fixture w;
    open_fixture(&w);
    assert_int_equal(map_add_static(&w.map, &w.arena, MK_STR("/apples"), handle), 0);
    map_force_redirect(&w.map);
    assert_int_equal(map_match(&w.map, MK_STR("/apples"), false, &m), MAP_SLASH);
    assert_int_equal(map_match(&w.map, MK_STR("/apples"), true, &m), MAP_FOUND);
    assert_int_equal(map_match(&w.map, MK_STR("/apples/"), false, &m), MAP_FOUND);
    assert_int_equal(map_match(&w.map, MK_STR("/b"), false, &m), MAP_NOT_FOUND);
    mk_arena_release(&w.arena);
}

TEST(rules)
{
    static const char *const rules[] = {"/foo/", "/bar", "/u/:name/:id", "/v/:x/end/"};
    static const struct path_case cases[] = {
        {"/foo", MAP_SLASH, NULL},
        {"/foo/", MAP_FOUND, "/foo/"},
        {"/foo/x", MAP_FOUND, "/foo/"},
        {"/foobar", MAP_NOT_FOUND, NULL},
        {"/bar", MAP_FOUND, "/bar"},
        {"/barfoo", MAP_FOUND, "/bar"},
        {"/u/a/1", MAP_FOUND, "/u/:name/:id"},
        {"/u/a/1/", MAP_FOUND, "/u/:name/:id"},
        {"/u/a/1/more", MAP_FOUND, "/u/:name/:id"},
        {"/u/a", MAP_NOT_FOUND, NULL},
        {"/u/a/", MAP_NOT_FOUND, NULL},
        {"/u//1", MAP_NOT_FOUND, NULL},
        {"/v/a/end", MAP_FOUND, "/v/:x/end/"},
        {"/v/a/endless", MAP_NOT_FOUND, NULL},
        {"/w/a/1", MAP_NOT_FOUND, NULL},
        {"", MAP_NOT_FOUND, NULL},
    };
    struct mk_route_match m;
    struct fixture w;
    open_fixture(&w);
    for (size_t i = 0; i < COUNT(rules); i++)
        assert_int_equal(map_add_rule(&w.map, &w.arena, mk_str_c(rules[i]), handle), 0);
    check_paths(&w.map, cases, COUNT(cases));
    assert_int_equal(map_match(&w.map, MK_STR("/u/a b/1"), false, &m), MAP_FOUND);
    assert_int_equal(m.n, 2);
    assert_str_equal(m.values[0], "a b");
    assert_str_equal(m.route->names[1], "id");
    mk_arena_release(&w.arena);
}

TEST(bad_rules)
{
    char pattern[2 * MK_ROUTES_SEGMENTS_MAX + 3];
    struct fixture w;
    open_fixture(&w);
    assert_int_equal(map_add_rule(&w.map, &w.arena, MK_STR(""), handle), -EINVAL);
    assert_int_equal(map_add_rule(&w.map, &w.arena, MK_STR("a"), handle), -EINVAL);
    memcpy(pattern, "/:", 2);
    for (int i = 1; i <= MK_ROUTES_SEGMENTS_MAX; i++)
        memcpy(pattern + 2 * i, "/a", 3);
    assert_int_equal(map_add_rule(&w.map, &w.arena, mk_str_c(pattern), handle), -EINVAL);
    assert_null(w.map.first);
    pattern[2 * MK_ROUTES_SEGMENTS_MAX] = '\0';
    assert_int_equal(map_add_rule(&w.map, &w.arena, mk_str_c(pattern), handle), 0);
    mk_arena_release(&w.arena);
}

TEST(root)
{
    struct mk_route_match m;
    struct map map = {.root = {.handler = handle}};
    assert_int_equal(map_match(&map, MK_STR(""), false, &m), MAP_FOUND);
    assert_int_equal(map_match(&map, MK_STR("/"), false, &m), MAP_FOUND);
    assert_int_equal(map_match(&map, MK_STR("/a"), false, &m), MAP_NOT_FOUND);
    map.root_adds_slash = true;
    assert_int_equal(map_match(&map, MK_STR(""), false, &m), MAP_SLASH);
    assert_int_equal(map_match(&map, MK_STR("/"), false, &m), MAP_FOUND);
}

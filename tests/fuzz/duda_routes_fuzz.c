// SPDX-License-Identifier: Apache-2.0
/*
 * Routes: the lines of the input are patterns for GET or, behind "!", for POST; the last one is a path. The tree finds
 * what a plain comparison of all patterns finds. The same lines are rules of the old API.
 */
#include "duda/core/compat/map.h"

#include <stdlib.h>

#define CHECK(fact) \
    do { \
        if (!(fact)) \
            abort(); \
    } while (0)

enum { ROUTES_MAX = 16, LINE_MAX_BYTES = 128 };

struct fixture {
    struct mk_arena arena;
    struct mk_routes routes;
    struct map map;
    struct mk_route *all[ROUTES_MAX];
    unsigned n;
};

static bool matches(struct mk_str pattern, struct mk_str path)
{
    while (pattern.len && path.len) {
        struct mk_str want = mk_routes_split_segment(&pattern);
        if (want.len && want.p[0] == '*')
            return true;
        struct mk_str segment = mk_routes_split_segment(&path);
        bool fits = want.len && want.p[0] == ':' ? segment.len > 0 : mk_str_eq(want, segment);
        if (!fits)
            return false;
    }
    return !pattern.len && !path.len;
}

static int rank(struct mk_str segment)
{
    return !segment.len ? 0 : segment.p[0] == ':' ? 1 : segment.p[0] == '*' ? 2 : 0;
}

/* Tells whether the first pattern comes before the second one; both match the path. */
static bool comes_first(struct mk_str a, struct mk_str b)
{
    while (a.len && b.len) {
        int first = rank(mk_routes_split_segment(&a)), second = rank(mk_routes_split_segment(&b));
        if (first != second)
            return first < second;
    }
    return false;
}

static const struct mk_route *find_plainly(const struct fixture *w, enum mk_method method, struct mk_str path)
{
    const struct mk_route *best = NULL;
    for (unsigned i = 0; i < w->n; i++) {
        const struct mk_route *r = w->all[i];
        if (!(r->methods & 1 << method) || !matches(r->pattern, path))
            continue;
        if (!best || comes_first(r->pattern, best->pattern))
            best = r;
    }
    return best;
}

static void check_values(const struct mk_route_match *m, struct mk_str path)
{
    CHECK(m->n == m->route->n && m->n <= MK_ROUTES_SEGMENTS_MAX);
    for (unsigned i = 0; i < m->n; i++)
        CHECK(m->values[i].p >= path.p && m->values[i].p + m->values[i].len <= path.p + path.len);
}

static void check_path(const struct fixture *w, struct mk_str path)
{
    static const enum mk_method methods[] = {MK_GET, MK_POST, MK_DELETE};
    struct mk_route_match m;
    for (unsigned i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
        bool found = mk_routes_match(&w->routes, methods[i], path, &m);
        CHECK(m.route == find_plainly(w, methods[i], path) && found == (m.route != NULL));
        if (found)
            check_values(&m, path);
        CHECK(!m.has_slash_form || (!found && !m.allow));
    }
    if (map_match(&w->map, path, false, &m) == MAP_FOUND)
        check_values(&m, path);
}

static void ignore(duda_request_t *dr)
{
    (void)dr;
}

static void add(struct fixture *w, struct mk_str line)
{
    const char *problem;
    bool is_post = line.len && line.p[0] == '!';
    struct mk_str pattern = is_post ? mk_str(line.p + 1, line.len - 1) : line;
    struct mk_route *r = mk_arena_zalloc(&w->arena, sizeof(*r));
    CHECK(r);
    int err =
        mk_routes_add(&w->routes, &w->arena, (mk_methods)(1 << (is_post ? MK_POST : MK_GET)), pattern, r, &problem);
    CHECK((err == 0) == (problem == NULL));
    if (err == 0)
        w->all[w->n++] = r;
    (void)map_add_rule(&w->map, &w->arena, pattern, ignore);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fixture w = {0};
    struct mk_str rest = mk_str((const char *)data, size);
    const char *end;
    mk_arena_init(&w.arena, NULL, 4 << 20, NULL, 0);
    for (unsigned lines = 0; rest.len && (end = memchr(rest.p, '\n', rest.len)) && lines < ROUTES_MAX; lines++) {
        struct mk_str line = mk_str(rest.p, (size_t)(end - rest.p));
        if (line.len <= LINE_MAX_BYTES)
            add(&w, line);
        rest = mk_str(end + 1, rest.len - line.len - 1);
    }
    if (rest.len && rest.p[0] == '/')
        check_path(&w, rest);
    check_path(&w, mk_str(rest.p, 0));
    mk_arena_release(&w.arena);
    return 0;
}

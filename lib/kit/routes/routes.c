// SPDX-License-Identifier: Apache-2.0
/*
 * The tree of <monkey/kit/routes.h>: patterns are checked and added, paths are found.
 */
#include <monkey/kit/routes.h>

#include <errno.h>

/* ── methods ── */

static const struct {
    struct mk_str name;
    enum mk_method method;
} methods_by_name[] = {
    {MK_STR("GET"), MK_GET},         {MK_STR("HEAD"), MK_HEAD},     {MK_STR("POST"), MK_POST},
    {MK_STR("PUT"), MK_PUT},         {MK_STR("DELETE"), MK_DELETE}, {MK_STR("PATCH"), MK_PATCH},
    {MK_STR("OPTIONS"), MK_OPTIONS},
};

enum { METHODS = MK_COUNT_OF(methods_by_name) };

static mk_methods find_method(struct mk_str name)
{
    for (size_t i = 0; i < METHODS; i++) {
        if (mk_str_eq(methods_by_name[i].name, name))
            return (mk_methods)(1 << methods_by_name[i].method);
    }
    return 0;
}

mk_methods mk_routes_read_methods(struct mk_str list)
{
    mk_methods all = 0;
    struct mk_str name;
    while (mk_str_next(&list, &name)) {
        mk_methods one = find_method(name);
        if (!one)
            return 0;
        all |= one;
    }
    return all;
}

void mk_routes_list_methods(struct mk_buf *out, mk_methods methods)
{
    const char *comma = "";
    if (methods == MK_ROUTES_ANY) {
        mk_buf_adds(out, MK_STR("ANY"));
        return;
    }
    for (size_t i = 0; i < METHODS; i++) {
        if (!(methods & 1 << methods_by_name[i].method))
            continue;
        mk_buf_addf(out, "%s%.*s", comma, MK_STR_ARG(methods_by_name[i].name));
        comma = ", ";
    }
}

/* ── patterns ── */

static bool is_name(struct mk_str name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = mk_lower(name.p[i]);
        if (!(c >= 'a' && c <= 'z') && c != '_' && !(i && c >= '0' && c <= '9'))
            return false;
    }
    return name.len > 0;
}

static bool is_wild(struct mk_str segment)
{
    return segment.len && (segment.p[0] == ':' || segment.p[0] == '*');
}

static struct mk_str name_of(struct mk_str segment)
{
    return mk_str_after(segment, 1);
}

/* Tells whether an escape like %20 begins at `i`. */
static bool has_escape(struct mk_str s, size_t i)
{
    static const char digits[] = "0123456789abcdefABCDEF";
    return s.p[i] == '%' && i + 2 < s.len && s.p[i + 1] && strchr(digits, s.p[i + 1]) && s.p[i + 2] &&
           strchr(digits, s.p[i + 2]);
}

static const char *check_bytes(struct mk_str pattern)
{
    for (size_t i = 0; i < pattern.len; i++) {
        unsigned char c = (unsigned char)pattern.p[i];
        if (c < ' ' || c == 0x7f)
            return "it has a control byte";
        if (c == '?' || c == '#')
            return "it has a \"?\" or \"#\": a pattern is for the path alone";
        if (has_escape(pattern, i))
            return "it is percent-encoded: paths are decoded before they are compared";
    }
    return NULL;
}

static const char *check_segment(struct mk_str segment, bool is_last)
{
    if (!segment.len)
        return is_last ? NULL : "it has an empty segment";
    if (mk_str_is_dots(segment))
        return "no path has a segment \".\" or \"..\"";
    if (is_wild(segment) && !is_name(name_of(segment)))
        return "a name must follow \":\" and \"*\": letters, digits and \"_\"";
    if (segment.p[0] == '*' && !is_last)
        return "\"*\" must be in its last segment";
    return NULL;
}

static bool has_name(const struct mk_str *names, unsigned n, struct mk_str name)
{
    while (n > 0) {
        if (mk_str_eq(names[--n], name))
            return true;
    }
    return false;
}

/* Checks a pattern, and collects the names of its parameters. Returns NULL, or what is wrong. */
static const char *check_pattern(struct mk_str pattern, struct mk_str *names, unsigned *ret_n)
{
    unsigned segments = 0;
    const char *problem = check_bytes(pattern);
    *ret_n = 0;
    if (!pattern.len || pattern.p[0] != '/')
        return "it does not begin with \"/\"";
    if (pattern.len > MK_ROUTES_PATTERN_BYTES_MAX)
        return "it is longer than 1,024 bytes";
    for (struct mk_str rest = pattern; !problem && rest.len;) {
        struct mk_str segment = mk_routes_split_segment(&rest);
        problem = check_segment(segment, !rest.len);
        if (!problem && ++segments > MK_ROUTES_SEGMENTS_MAX)
            problem = "it has more than 32 segments";
        else if (!problem && is_wild(segment) && has_name(names, *ret_n, name_of(segment)))
            problem = "it has a name twice";
        else if (!problem && is_wild(segment))
            names[(*ret_n)++] = name_of(segment);
    }
    return problem;
}

/* ── the tree ── */

/* Returns where a segment is among the sorted ones, or where it belongs. */
static uint32_t find_place(const struct mk_route_node *node, struct mk_str segment)
{
    uint32_t low = 0, high = node->n;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (mk_str_compare(node->statics[mid]->segment, segment) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static struct mk_route_node *find_static(const struct mk_route_node *node, struct mk_str segment)
{
    uint32_t at = find_place(node, segment);
    return at < node->n && mk_str_eq(node->statics[at]->segment, segment) ? node->statics[at] : NULL;
}

static struct mk_route_node *insert_static(struct mk_route_node *node, struct mk_arena *arena, struct mk_str segment)
{
    uint32_t at = find_place(node, segment);
    struct mk_route_node *child = mk_arena_zalloc(arena, sizeof(*child));
    struct mk_route_node **statics = mk_arena_grow(arena, node->statics, node->n, sizeof(struct mk_route_node *));
    if (!child || !statics)
        return NULL;
    child->segment = segment;
    memmove(statics + at + 1, statics + at, (node->n - at) * sizeof(struct mk_route_node *));
    statics[at] = child;
    node->statics = statics;
    node->n++;
    return child;
}

/* Returns the node below `node` for a segment of a pattern, which it makes if it is not there; NULL without memory. */
static struct mk_route_node *get_child(struct mk_route_node *node, struct mk_arena *arena, struct mk_str segment)
{
    if (segment.p[0] == ':') {
        if (!node->param)
            node->param = mk_arena_zalloc(arena, sizeof(*node->param));
        return node->param;
    }
    struct mk_route_node *child = find_static(node, segment);
    return child ? child : insert_static(node, arena, segment);
}

/* Returns the list to which the routes of a pattern belong; NULL without memory. */
static struct mk_route **get_end(struct mk_routes *routes, struct mk_arena *arena, struct mk_str pattern)
{
    struct mk_route_node *node = &routes->root;
    while (node && pattern.len) {
        struct mk_str segment = mk_routes_split_segment(&pattern);
        if (!segment.len)
            return &node->ends[MK_ROUTES_SLASH];
        if (segment.p[0] == '*')
            return &node->ends[MK_ROUTES_REST];
        node = get_child(node, arena, segment);
    }
    return node ? &node->ends[MK_ROUTES_PLAIN] : NULL;
}

static bool is_twice(const struct mk_route *list, mk_methods methods)
{
    for (; list; list = list->next_at_node) {
        if ((list->methods == MK_ROUTES_ANY) == (methods == MK_ROUTES_ANY) && list->methods & methods)
            return true;
    }
    return false;
}

static void insert_route(struct mk_routes *routes, struct mk_route **end, struct mk_route *r)
{
    r->next_at_node = *end;
    *end = r;
    if (routes->last)
        routes->last->next = r;
    else
        routes->first = r;
    routes->last = r;
}

static const struct mk_str *copy_names(struct mk_arena *arena, const struct mk_str *names, unsigned n)
{
    struct mk_str *copy = mk_arena_alloc(arena, (n + 1) * sizeof(*copy));
    for (unsigned i = 0; copy && i < n; i++) {
        copy[i] = mk_arena_dup(arena, names[i]);
        if (!copy[i].p)
            return NULL;
    }
    return copy;
}

int mk_routes_add(struct mk_routes *routes, struct mk_arena *arena, mk_methods methods, struct mk_str pattern,
                  struct mk_route *route, const char **ret_problem)
{
    struct mk_str names[MK_ROUTES_SEGMENTS_MAX];
    unsigned n;
    *ret_problem = check_pattern(pattern, names, &n);
    if (*ret_problem)
        return -EINVAL;
    *ret_problem = "there is no memory";
    struct mk_str copy = mk_arena_dup(arena, pattern);
    struct mk_route **end = copy.p ? get_end(routes, arena, copy) : NULL;
    if (!end)
        return -ENOMEM;
    *route = (struct mk_route){.pattern = copy, .methods = methods, .n = n, .names = copy_names(arena, names, n)};
    if (!route->names)
        return -ENOMEM;
    *ret_problem = "there is a route for its method and pattern already";
    if (is_twice(*end, methods))
        return -EEXIST;
    *ret_problem = NULL;
    insert_route(routes, end, route);
    return 0;
}

/* ── paths ── */

struct search {
    enum mk_method method;
    struct mk_route_match *match;
};

/* Returns the route of a list that has the method itself; NULL if there is none. */
static const struct mk_route *find_own(const struct mk_route *list, enum mk_method method)
{
    while (list && (list->methods == MK_ROUTES_ANY || !(list->methods & 1 << method)))
        list = list->next_at_node;
    return list;
}

static const struct mk_route *find_any(const struct mk_route *list, enum mk_method method)
{
    if (!(MK_ROUTES_ANY & 1 << method))
        return NULL;
    while (list && list->methods != MK_ROUTES_ANY)
        list = list->next_at_node;
    return list;
}

static bool choose_route(struct search *s, const struct mk_route *list)
{
    const struct mk_route *r = find_own(list, s->method);
    if (!r && s->method == MK_HEAD)
        r = find_own(list, MK_GET);
    if (!r)
        r = find_any(list, s->method);
    s->match->route = r;
    for (; !r && list; list = list->next_at_node)
        s->match->allow |= list->methods & MK_ROUTES_KNOWN;
    return s->match->route;
}

static bool choose_rest(struct search *s, const struct mk_route_node *node, struct mk_str path)
{
    struct mk_route_match *m = s->match;
    if (!node->ends[MK_ROUTES_REST])
        return false;
    m->values[m->n++] = mk_str_after(path, 1);
    if (choose_route(s, node->ends[MK_ROUTES_REST]))
        return true;
    m->n--;
    return false;
}

/* Searches for the end of a path, "" or "/". */
static bool search_end(struct search *s, const struct mk_route_node *node, struct mk_str path)
{
    if (path.len)
        return choose_route(s, node->ends[MK_ROUTES_SLASH]) || choose_rest(s, node, path);
    if (node->ends[MK_ROUTES_SLASH] || node->ends[MK_ROUTES_REST])
        s->match->has_slash_form = true;
    return choose_route(s, node->ends[MK_ROUTES_PLAIN]);
}

/* Recurses once for each segment of the longest pattern, and visits each node at most once. */
static bool search_node(struct search *s, const struct mk_route_node *node, struct mk_str path)
{
    struct mk_route_match *m = s->match;
    if (path.len <= 1)
        return search_end(s, node, path);
    struct mk_str rest = path, segment = mk_routes_split_segment(&rest);
    const struct mk_route_node *child = find_static(node, segment);
    if (child && search_node(s, child, rest))
        return true;
    if (node->param && segment.len) {
        m->values[m->n++] = segment;
        if (search_node(s, node->param, rest))
            return true;
        m->n--;
    }
    return choose_rest(s, node, path);
}

bool mk_routes_match(const struct mk_routes *routes, enum mk_method method, struct mk_str path,
                     struct mk_route_match *ret)
{
    struct search s = {method, ret};
    assert(!path.len || path.p[0] == '/');
    ret->route = NULL;
    ret->allow = 0;
    ret->n = 0;
    ret->has_slash_form = false;
    bool found = search_node(&s, &routes->root, path);
    if (found || ret->allow)
        ret->has_slash_form = false;
    return found;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * The routes of the old API (map.h), and the objects `map` and "router.2".
 */
#include "compat/map.h"

#include "common/api_error.h"
#include "common/current.h"
#include "objects.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>

struct duda_param {
    struct mk_str name;
    short len_max;
};

struct duda_method {
    struct mk_str uid;
    struct duda_route route; /* as many values as the method has parameters */
    const struct duda_param *params[MAP_PARAMS_MAX];
    struct mk_str names[MAP_PARAMS_MAX];
    unsigned n_params;
};

struct duda_interface {
    struct mk_str uid;
    struct map_methods methods;
};

/* ── rules ── */

static bool has_wildcard(struct mk_str pattern)
{
    for (size_t i = 0; i + 1 < pattern.len; i++) {
        if (pattern.p[i] == '/' && pattern.p[i + 1] == ':')
            return true;
    }
    return false;
}

/* Makes a rule that is not in the map yet; NULL without memory. */
static struct map_rule *new_rule(struct mk_arena *arena, struct mk_str pattern, duda_request_fn fn)
{
    struct map_rule *rule = mk_arena_zalloc(arena, sizeof(*rule));
    struct mk_str copy = mk_arena_dup(arena, pattern);
    if (!rule || !copy.p)
        return NULL;
    rule->route = (struct duda_route){.at = {.pattern = copy, .methods = MK_ROUTES_ANY}, .handler = fn};
    return rule;
}

static void append_rule(struct map *map, struct map_rule *rule)
{
    if (map->last)
        map->last->next = rule;
    else
        map->first = rule;
    map->last = rule;
}

int map_add_static(struct map *map, struct mk_arena *arena, struct mk_str path, duda_request_fn fn)
{
    struct map_rule *rule = new_rule(arena, path, fn);
    if (!rule)
        return -ENOMEM;
    append_rule(map, rule);
    return 0;
}

/* Collects the names of a pattern. Returns 0, -EINVAL (more than 32 segments) or -ENOMEM. */
static int read_names(struct mk_arena *arena, struct mk_route *r)
{
    struct mk_str rest = r->pattern;
    struct mk_str *names = mk_arena_zalloc(arena, MK_ROUTES_SEGMENTS_MAX * sizeof(*names));
    if (!names)
        return -ENOMEM;
    r->names = names;
    for (unsigned segments = 0; rest.len; segments++) {
        struct mk_str segment = mk_routes_split_segment(&rest);
        if (segments == MK_ROUTES_SEGMENTS_MAX)
            return -EINVAL;
        if (!segment.len || segment.p[0] != ':')
            continue;
        names[r->n] = mk_arena_dup(arena, mk_str_after(segment, 1));
        if (!names[r->n++].p)
            return -ENOMEM;
    }
    return 0;
}

int map_add_rule(struct map *map, struct mk_arena *arena, struct mk_str pattern, duda_request_fn fn)
{
    if (!pattern.len || pattern.p[0] != '/')
        return -EINVAL;
    struct map_rule *rule = new_rule(arena, pattern, fn);
    if (!rule)
        return -ENOMEM;
    bool is_static = !has_wildcard(pattern);
    int err = is_static ? 0 : read_names(arena, &rule->route.at);
    if (err < 0)
        return err;
    rule->adds_slash = is_static && pattern.p[pattern.len - 1] == '/';
    append_rule(map, rule);
    return 0;
}

static bool match_segments(const struct mk_route *r, struct mk_str path, struct mk_route_match *ret)
{
    struct mk_str pattern = r->pattern;
    ret->n = 0;
    while (pattern.len) {
        struct mk_str want = mk_routes_split_segment(&pattern);
        if (!want.len && !pattern.len)
            return true; /* a slash at the end means nothing */
        if (!path.len)
            return false;
        struct mk_str segment = mk_routes_split_segment(&path);
        bool is_wild = want.len && want.p[0] == ':';
        if (is_wild && segment.len)
            ret->values[ret->n++] = segment;
        else if (is_wild || !mk_str_eq(want, segment))
            return false;
    }
    return true;
}

static enum map_result match_rule(const struct map *map, const struct map_rule *rule, struct mk_str path,
                                  bool has_query, struct mk_route_match *ret)
{
    struct mk_str pattern = rule->route.at.pattern;
    ret->n = 0;
    if (rule->route.at.n)
        return match_segments(&rule->route.at, path, ret) ? MAP_FOUND : MAP_NOT_FOUND;
    if (rule->adds_slash && path.len + 1 == pattern.len && mk_str_starts(pattern, path))
        return MAP_SLASH;
    if (!mk_str_starts(path, pattern))
        return MAP_NOT_FOUND;
    return map->force_redirect && path.len && path.p[path.len - 1] != '/' && !has_query ? MAP_SLASH : MAP_FOUND;
}

static enum map_result match_rules(const struct map *map, struct mk_str path, bool has_query,
                                   struct mk_route_match *ret)
{
    for (const struct map_rule *rule = map->first; rule; rule = rule->next) {
        enum map_result result = match_rule(map, rule, path, has_query, ret);
        if (result == MAP_NOT_FOUND)
            continue;
        ret->route = &rule->route.at;
        return result;
    }
    return MAP_NOT_FOUND;
}

/* ── interfaces ── */

static bool takes_values(const struct duda_method *m, const struct mk_route_match *values)
{
    if (values->n != m->route.at.n)
        return false;
    for (unsigned i = 0; i < m->n_params; i++) {
        if (i >= values->n || !m->params[i]->len_max || values->values[i].len <= (size_t)m->params[i]->len_max)
            continue;
        mk_log_debug("%.*s: the parameter %.*s has more than %d bytes", MK_STR_ARG(m->uid),
                     MK_STR_ARG(m->params[i]->name), m->params[i]->len_max);
        return false;
    }
    return true;
}

static bool match_interface(const struct duda_interface *f, struct mk_str uid, struct mk_route_match *ret)
{
    for (uint32_t i = 0; i < f->methods.n; i++) {
        const struct duda_method *m = f->methods.items[i];
        if (!mk_str_eq(m->uid, uid) || !takes_values(m, ret))
            continue;
        ret->route = &m->route.at;
        return true;
    }
    return false;
}

/* Cuts a path into an interface, a method and at most 8 parameters. */
static bool split_path(struct mk_str path, struct mk_str *ret_interface, struct mk_str *ret_method,
                       struct mk_route_match *ret)
{
    ret->n = 0;
    if (!path.len)
        return false;
    *ret_interface = mk_routes_split_segment(&path);
    if (!path.len)
        return false;
    *ret_method = mk_routes_split_segment(&path);
    while (path.len > 1) {
        if (ret->n == MAP_PARAMS_MAX)
            return false;
        ret->values[ret->n++] = mk_routes_split_segment(&path);
    }
    return true;
}

static bool match_interfaces(const struct map *map, struct mk_str path, struct mk_route_match *ret)
{
    struct mk_str interface, method;
    if (!map->interfaces.n || !split_path(path, &interface, &method, ret))
        return false;
    for (uint32_t i = 0; i < map->interfaces.n; i++) {
        const struct duda_interface *f = map->interfaces.items[i];
        if (mk_str_eq(f->uid, interface) && match_interface(f, method, ret))
            return true;
    }
    return false;
}

enum map_result map_match(const struct map *map, struct mk_str path, bool has_query, struct mk_route_match *ret)
{
    ret->n = 0;
    if (map->root.handler && path.len <= 1) {
        ret->route = &map->root.at;
        return !path.len && map->root_adds_slash ? MAP_SLASH : MAP_FOUND;
    }
    return match_interfaces(map, path, ret) ? MAP_FOUND : match_rules(map, path, has_query, ret);
}

/* ── the listing ── */

static void list_method(const struct duda_interface *f, struct duda_method *m, map_list_fn fn, void *ctx)
{
    MK_BUF_ON_STACK(pattern, 512);
    mk_buf_addf(&pattern, "/%.*s/%.*s", MK_STR_ARG(f->uid), MK_STR_ARG(m->uid));
    for (unsigned i = 0; i < m->route.at.n; i++)
        mk_buf_addf(&pattern, "/:%.*s", MK_STR_ARG(m->names[i]));
    fn(&m->route, mk_buf_str(&pattern), ctx);
}

void map_list(struct map *map, map_list_fn fn, void *ctx)
{
    if (map->root.handler)
        fn(&map->root, map->root.at.pattern, ctx);
    for (uint32_t i = 0; i < map->interfaces.n; i++) {
        const struct duda_interface *f = map->interfaces.items[i];
        for (uint32_t k = 0; k < f->methods.n; k++)
            list_method(f, f->methods.items[k], fn, ctx);
    }
    for (struct map_rule *rule = map->first; rule; rule = rule->next)
        fn(&rule->route, rule->route.at.pattern, ctx);
}

/* ── the object `map` ── */

int map_init(struct service *s)
{
    map_of(s)->arena = &s->arena;
    return 0;
}

int map_complete(struct service *s, struct mk_buf *error)
{
    const char *problem = map_of(s)->problem;
    if (problem)
        mk_buf_addf(error, "%s", problem);
    return problem ? -EINVAL : 0;
}

/* Returns the map of the service whose duda_main() calls `function`; NULL, which is logged, outside of it. */
static struct map *map_of_main(const char *function)
{
    char call[64];
    snprintf(call, sizeof(call), "%s()", function);
    return phase_check(PHASE_MAIN, call) ? map_of(current.service) : NULL;
}

static void set_problem(struct map *map, const char *format, const char *text)
{
    MK_BUF_ON_STACK(sentence, 512);
    mk_buf_addf(&sentence, format, text);
    const char *copy = mk_arena_dup(map->arena, mk_str_c(mk_buf_cstr(&sentence))).p;
    if (!map->problem)
        map->problem = copy ? copy : "there is no memory";
}

/* Returns a function of the service; NULL, which is an error of its start, if it has none of that name. */
static duda_request_fn find_function(struct map *map, const char *name)
{
    duda_request_fn fn = NULL;
    if (name)
        *(void **)&fn = dlsym(current.service->handle, name);
    if (!fn)
        set_problem(map, "its map names the function \"%s\", which it does not have", name ? name : "");
    return fn;
}

static int add_static(struct map *map, const char *path, duda_request_fn fn)
{
    if (!map || !path || !fn)
        return -1;
    return map_add_static(map, map->arena, mk_str_c(path), fn) < 0 ? -1 : 0;
}

static int add_static_by_name(const char *path, const char *function_name)
{
    struct map *map = map_of_main("map->static_add");
    return map ? add_static(map, path, find_function(map, function_name)) : -1;
}

static int add_static_by_pointer(const char *path, duda_request_fn fn)
{
    return add_static(map_of_main("map->static_add_ref"), path, fn);
}

static int set_root(struct map *map, duda_request_fn fn, bool adds_slash)
{
    if (!map || !fn)
        return -1;
    map->root = (struct duda_route){.at = {.pattern = MK_STR("/"), .methods = MK_ROUTES_ANY}, .handler = fn};
    map->root_adds_slash = adds_slash;
    return 0;
}

static int set_root_by_name(const char *function_name)
{
    struct map *map = map_of_main("map->static_root");
    return map ? set_root(map, find_function(map, function_name), false) : -1;
}

static duda_interface_t *new_interface(const char *uid)
{
    struct map *map = map_of_main("map->interface_new");
    struct duda_interface *f = map && uid ? mk_arena_zalloc(map->arena, sizeof(*f)) : NULL;
    if (!f)
        return NULL;
    f->uid = mk_arena_dup(map->arena, mk_str_c(uid));
    return f->uid.p ? f : NULL;
}

static duda_method_t *new_method(struct map *map, const char *uid, duda_request_fn fn, int n_params)
{
    if (n_params < 0 || n_params > MAP_PARAMS_MAX)
        set_problem(map, "its method \"%s\" does not have 0 to 8 parameters", uid);
    struct duda_method *m = uid && fn ? mk_arena_zalloc(map->arena, sizeof(*m)) : NULL;
    if (!m || map->problem)
        return NULL;
    m->uid = mk_arena_dup(map->arena, mk_str_c(uid));
    m->route = (struct duda_route){
        .at = {.pattern = m->uid, .methods = MK_ROUTES_ANY, .n = (unsigned)n_params, .names = m->names}, .handler = fn};
    for (unsigned i = 0; i < MAP_PARAMS_MAX; i++)
        m->names[i] = MK_STR("");
    return m->uid.p ? m : NULL;
}

static duda_method_t *new_method_by_name(const char *uid, const char *function_name, int n_params)
{
    struct map *map = map_of_main("map->method_new");
    return map ? new_method(map, uid, find_function(map, function_name), n_params) : NULL;
}

static duda_method_t *new_method_by_pointer(const char *uid, duda_request_fn fn, int n_params)
{
    struct map *map = map_of_main("map->method_builtin_new");
    return map ? new_method(map, uid, fn, n_params) : NULL;
}

static duda_param_t *new_param(const char *name, short max_len)
{
    struct map *map = map_of_main("map->param_new");
    struct duda_param *p = map && name ? mk_arena_zalloc(map->arena, sizeof(*p)) : NULL;
    if (!p)
        return NULL;
    *p = (struct duda_param){mk_arena_dup(map->arena, mk_str_c(name)), max_len};
    return p->name.p && max_len >= 0 ? p : NULL;
}

static void add_param(duda_param_t *param, duda_method_t *method)
{
    struct map *map = map_of_main("map->method_add_param");
    if (!map || !param || !method)
        return;
    if (method->n_params == MAP_PARAMS_MAX) {
        set_problem(map, "its method \"%s\" does not have 0 to 8 parameters", method->uid.p);
        return;
    }
    method->names[method->n_params] = param->name;
    method->params[method->n_params++] = param;
}

static void add_method(duda_method_t *method, duda_interface_t *interface)
{
    struct map *map = map_of_main("map->interface_add_method");
    if (!map || !method || !interface)
        return;
    struct map_methods *all = &interface->methods;
    struct duda_method **items = mk_arena_grow(map->arena, all->items, all->n, sizeof(*items));
    if (!items) {
        set_problem(map, "%s", "there is no memory");
        return;
    }
    items[all->n] = method;
    *all = (struct map_methods){items, all->n + 1};
}

static void add_interface(duda_interface_t *interface)
{
    struct map *map = map_of_main("map->add_interface");
    if (!map || !interface)
        return;
    struct map_interfaces *all = &map->interfaces;
    struct duda_interface **items = mk_arena_grow(map->arena, all->items, all->n, sizeof(*items));
    if (!items) {
        set_problem(map, "%s", "there is no memory");
        return;
    }
    items[all->n] = interface;
    *all = (struct map_interfaces){items, all->n + 1};
}

const struct duda_api_map object_map = {
    .static_add = add_static_by_name,
    .static_add_ref = add_static_by_pointer,
    .static_root = set_root_by_name,
    .interface_new = new_interface,
    .method_new = new_method_by_name,
    .method_builtin_new = new_method_by_pointer,
    .param_new = new_param,
    .method_add_param = add_param,
    .interface_add_method = add_method,
    .add_interface = add_interface,
};

/* ── the object "router.2" ── */

static int add_pattern(const char *pattern, duda_request_fn fn)
{
    struct map *map = map_of_main("router->map");
    if (!map)
        return -1;
    if (pattern && fn && map_add_rule(map, map->arena, mk_str_c(pattern), fn) == 0)
        return 0;
    set_problem(map, "router->map() cannot add the pattern \"%s\"", pattern ? pattern : "");
    return -1;
}

static int set_root_with_slash(duda_request_fn fn)
{
    return set_root(map_of_main("router->root"), fn, true);
}

const struct duda_api_router_2 object_router_2 = {
    .map = add_pattern,
    .root = set_root_with_slash,
};

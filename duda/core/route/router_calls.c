// SPDX-License-Identifier: Apache-2.0
/*
 * The object `router`.
 */
#include "route/router.h"

#include "common/current.h"
#include "log/message.h"
#include "objects.h"
#include "request/request.h"
#include "route/dispatch.h"

#include <errno.h>

/* ── routes ── */

static void log_refusal(const char *function, const char *text, const char *problem)
{
    message_log(MK_LOG_ERROR, "%s(\"%.200s\") adds no route: %s", function, text ? text : "", problem);
}

/* Returns a pattern after the prefix of the group; `.p` NULL, and a sentence in *problem, if that cannot be. */
static struct mk_str add_prefix(const struct router *router, struct mk_str pattern, const char **problem)
{
    struct mk_buf whole;
    if (!router->group)
        return pattern;
    struct mk_str prefix = router->group->at.pattern;
    bool is_wrong = pattern.len && pattern.p[0] != '/';
    size_t size = prefix.len + pattern.len + 1;
    char *storage = is_wrong ? NULL : mk_arena_alloc(router->arena, size);
    if (!storage) {
        *problem = is_wrong ? "in a group it is empty or begins with a slash" : "there is no memory";
        return MK_STR_NONE;
    }
    mk_buf_init_fixed(&whole, storage, size);
    mk_buf_adds(&whole, prefix);
    mk_buf_adds(&whole, pattern);
    storage[size - 1] = '\0';
    return mk_buf_str(&whole);
}

static struct duda_route *add_route(const char *function, mk_methods methods, const char *pattern,
                                    duda_request_fn handler)
{
    struct router *router = router_of_main(function);
    const char *problem = "there is no pattern or no handler";
    if (!router)
        return NULL;
    struct mk_str whole = pattern && handler ? add_prefix(router, mk_str_c(pattern), &problem) : MK_STR_NONE;
    struct duda_route *r = whole.p ? mk_arena_zalloc(router->arena, sizeof(*r)) : NULL;
    if (r && mk_routes_add(&router->routes, router->arena, methods, whole, &r->at, &problem) == 0) {
        r->handler = handler;
        r->group = router->group;
        return r;
    }
    log_refusal(function, whole.p ? whole.p : pattern, problem);
    return NULL;
}

static struct duda_route *add_group(const char *prefix, void (*add)(void))
{
    struct router *router = router_of_main("router->group");
    const char *problem = "there is no prefix or no function";
    if (!router)
        return NULL;
    struct mk_str whole = prefix && add ? add_prefix(router, mk_str_c(prefix), &problem) : MK_STR_NONE;
    struct duda_route *group = whole.p ? mk_arena_zalloc(router->arena, sizeof(*group)) : NULL;
    if (!group) {
        log_refusal("router->group", prefix, problem);
        return NULL;
    }
    group->at.pattern = whole; /* valid as long as `add` runs */
    group->group = router->group;
    router->group = group;
    add();
    router->group = group->group;
    return group;
}

#define ADD_CALL(name, methods) \
    static struct duda_route *add_##name(const char *pattern, duda_request_fn handler) \
    { \
        return add_route("router->" #name, methods, pattern, handler); \
    }

ADD_CALL(get, 1 << MK_GET)
ADD_CALL(post, 1 << MK_POST)
ADD_CALL(put, 1 << MK_PUT)
ADD_CALL(delete, 1 << MK_DELETE)
ADD_CALL(patch, 1 << MK_PATCH)
ADD_CALL(any, MK_ROUTES_ANY)

static struct duda_route *add_for_methods(const char *names, const char *pattern, duda_request_fn handler)
{
    static const char problem[] = "it knows GET, HEAD, POST, PUT, DELETE, PATCH and OPTIONS";
    mk_methods methods = names ? mk_routes_read_methods(mk_str_c(names)) : 0;
    if (methods)
        return add_route("router->add", methods, pattern, handler);
    if (router_of_main("router->add"))
        log_refusal("router->add", names, problem);
    return NULL;
}

/* ── callbacks and properties ── */

static int add_hook(struct router *router, struct route_hook **list, struct route_hook hook)
{
    if (!hook.before && !hook.after)
        return -EINVAL;
    struct route_hook *copy = mk_arena_alloc(router->arena, sizeof(*copy));
    if (!copy)
        return -ENOMEM;
    *copy = hook;
    router->has_after |= hook.after != NULL;
    while (*list)
        list = &(*list)->next;
    *list = copy;
    return 0;
}

static int add_before_all(duda_before_fn fn)
{
    struct router *router = router_of_main("router->before_all");
    return router ? add_hook(router, &router->before, (struct route_hook){.before = fn}) : -EPERM;
}

static int add_after_all(duda_request_fn fn)
{
    struct router *router = router_of_main("router->after_all");
    return router ? add_hook(router, &router->after, (struct route_hook){.after = fn}) : -EPERM;
}

/* Returns 0, -EINVAL or -EPERM: whether the route may be changed. */
static int check_route(const struct duda_route *route, const char *function)
{
    if (!router_of_main(function))
        return -EPERM;
    return route ? 0 : -EINVAL;
}

/* Defines a function that changes a route, and sets `err` if that fails. */
#define ROUTE_CALL(function, call, change) \
    static function \
    { \
        int err = check_route(route, call); \
        if (err == 0) \
            change; \
        return err; \
    }

ROUTE_CALL(int add_before(struct duda_route *route, duda_before_fn fn), "router->before",
           err = add_hook(router_of(current.service), &route->before, (struct route_hook){.before = fn}))
ROUTE_CALL(int add_after(struct duda_route *route, duda_request_fn fn), "router->after",
           err = add_hook(router_of(current.service), &route->after, (struct route_hook){.after = fn}))
ROUTE_CALL(int set_limit(struct duda_route *route, size_t bytes), "router->limit", route->body_bytes_max = bytes)
ROUTE_CALL(int set_timeout(struct duda_route *route, uint32_t ms), "router->timeout", route->timeout_ms = ms)
ROUTE_CALL(int set_stream_body(struct duda_route *route), "router->stream_body", route->stream_body = true)
ROUTE_CALL(int set_in_dthread(struct duda_route *route), "router->in_dthread", route->in_dthread = true)

static int set_not_found(duda_request_fn fn)
{
    struct router *router = router_of_main("router->not_found");
    if (router)
        router->not_found = fn;
    return router ? 0 : -EPERM;
}

static int set_error(duda_error_fn fn)
{
    struct router *router = router_of_main("router->error");
    if (router)
        router->error = fn;
    return router ? 0 : -EPERM;
}

REQUEST_CALL(const char *get_pattern(duda_request_t *dr), request_check, "router->pattern()", NULL,
             dr->dispatch->route ? dr->dispatch->route->at.pattern.p : NULL)

const struct duda_api_router object_router = {
    .get = add_get,
    .post = add_post,
    .put = add_put,
    .delete = add_delete,
    .patch = add_patch,
    .any = add_any,
    .add = add_for_methods,
    .before_all = add_before_all,
    .before = add_before,
    .after_all = add_after_all,
    .after = add_after,
    .limit = set_limit,
    .timeout = set_timeout,
    .stream_body = set_stream_body,
    .not_found = set_not_found,
    .error = set_error,
    .next = dispatch_next,
    .pattern = get_pattern,
    .in_dthread = set_in_dthread,
    .group = add_group,
};

// SPDX-License-Identifier: Apache-2.0
/*
 * Functions of the program that answer requests (<monkey/embed.h>): a plugin finds the route of a request and calls its
 * function. Routes belong to the server, so that they stay over reloads; they change only while no worker runs.
 */
#include "embed/embed.h"

#include <errno.h>
#include <stdio.h>

enum { TEXT_BYTES = 2048, TEXT_BYTES_MAX = 64 * 1024 };

struct handler {
    struct mk_route at;
    mk_handle_fn fn;
    void *ctx;
};

/* The parameters of a request: the state of the plugin. */
struct params {
    const struct mk_route *route;
    struct mk_str values[]; /* they point into the path, which lives as long */
};

/* ── registering ── */

static bool has_handle_plugin(const struct mk__program *program)
{
    for (unsigned i = 0; i < program->n_plugins; i++)
        if (program->plugins[i] == &mk__embed_handle_plugin)
            return true;
    return false;
}

static mk_methods read_methods(const char *names)
{
    return strcmp(names, "ANY") == 0 ? (mk_methods)MK_ROUTES_ANY : mk_routes_read_methods(mk_str_c(names));
}

static int add_handler(struct mk_server *s, mk_methods methods, const char *pattern, mk_handle_fn fn, void *ctx)
{
    struct mk__embedded *e = s->embedded;
    const char *problem = "there is no memory";
    struct handler *h = mk_arena_zalloc(&e->arena, sizeof(*h));
    int err = h ? mk_routes_add(&e->routes, &e->arena, methods, mk_str_c(pattern), &h->at, &problem) : -ENOMEM;
    if (err < 0)
        return mk__embed_fail(s, err, "mk_server_handle(\"%.200s\") adds no handler: %s", pattern, problem);
    h->fn = fn;
    h->ctx = ctx;
    return 0;
}

int mk_server_handle(struct mk_server *s, const char *methods, const char *pattern, mk_handle_fn fn, void *ctx)
{
    struct mk__embedded *e;
    int err = mk__embed_configure(s, &e);
    if (err == 0 && (!methods || !pattern || !fn))
        err = mk__server_refuse(s, -EINVAL, "mk_server_handle(): methods, pattern or function are NULL");
    if (err < 0)
        return err;
    mk_methods set = read_methods(methods);
    if (!set)
        return mk__embed_fail(s, -EINVAL,
                              "mk_server_handle(\"%.100s\"): methods are ANY, or some of GET, HEAD, POST, PUT, DELETE, "
                              "PATCH and OPTIONS",
                              methods);
    if (!has_handle_plugin(&e->program))
        err = mk_server_add_plugin(s, &mk__embed_handle_plugin);
    return err == 0 ? add_handler(s, set, pattern, fn, ctx) : err;
}

/* ── requests ── */

static int keep_params(struct mk_request *req, const struct mk_route_match *match)
{
    size_t bytes = match->n * sizeof(match->values[0]);
    struct params *p = mk_arena_alloc(mk_request_arena(req), sizeof(*p) + bytes);
    if (!p)
        return -ENOMEM;
    p->route = match->route;
    memcpy(p->values, match->values, bytes);
    return mk_request_set_state(req, &mk__embed_handle_plugin, p);
}

static int call_handler(struct mk_request *req, const struct mk_route_match *match)
{
    const struct handler *h = (const struct handler *)(const void *)match->route;
    static_assert(offsetof(struct handler, at) == 0, "a handler begins with its route");
    int err = match->n ? keep_params(req, match) : 0;
    return err < 0 ? err : h->fn(req, h->ctx);
}

static bool has_files(const struct mk_generation *g)
{
    for (unsigned i = 0; i < g->n_plugins; i++)
        if (strcmp(g->plugins[i]->name, "static") == 0)
            return true;
    return false;
}

static int refuse_method(struct mk_request *req, mk_methods allow)
{
    enum mk_method method = mk_request_method(req);
    if ((method == MK_GET || method == MK_HEAD) && has_files(mk_request_worker(req)->generation))
        return MK_DECLINED;
    MK_BUF_ON_STACK(methods, 64);
    mk_routes_list_methods(&methods, mk_routes_allow(allow));
    if (method == MK_METHOD_OTHER)
        mk_response_error(req, 501);
    else
        mk_response_method_not_allowed(req, mk_buf_str(&methods));
    return 0;
}

static int on_content(struct mk_request *req)
{
    const struct mk_server *s = mk_request_worker(req)->generation->server;
    MK_UNINITIALIZED struct mk_route_match match;
    struct mk_str path = mk_request_path(req);
    if (!path.len || path.p[0] != '/') /* OPTIONS *, CONNECT */
        return MK_DECLINED;
    if (mk_routes_match(&s->embedded->routes, mk_request_method(req), path, &match))
        return call_handler(req, &match);
    if (match.allow)
        return refuse_method(req, match.allow);
    if (!match.has_slash_form)
        return MK_DECLINED;
    mk_response_redirect_to_slash(req, 0);
    return 0;
}

const struct mk_plugin mk__embed_handle_plugin = {
    MK_PLUGIN_HEAD("handle", "1.0", "functions of the program that embeds the server"),
    .on_content = on_content,
};

struct mk_str mk_request_param(const struct mk_request *req, const char *name)
{
    const struct params *p = mk_request_state(req, &mk__embed_handle_plugin);
    for (unsigned i = 0; p && i < p->route->n; i++)
        if (mk_str_eq(p->route->names[i], mk_str_c(name)))
            return p->values[i];
    return MK_STR_NONE;
}

/* ── responses ── */

static int begin_response(struct mk_request *req, int status, const char *type)
{
    int err = mk_response_set_status(req, status);
    return err == 0 && type ? mk_response_header(req, MK_STR("Content-Type"), mk_str_c(type)) : err;
}

/* Returns 0 or -errno; MK_AGAIN of a part is no reason to wait, since the response ends with it. */
static int end_response(struct mk_request *req, int err)
{
    if (err < 0)
        return err;
    mk_response_end(req);
    return 0;
}

int mk_response_send(struct mk_request *req, int status, const char *type, struct mk_str body)
{
    int err = begin_response(req, status, type);
    return end_response(req, err == 0 ? mk_response_write(req, body) : err);
}

int mk_response_printf(struct mk_request *req, int status, const char *type, const char *format, ...)
{
    MK_UNINITIALIZED char text[TEXT_BYTES];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (n < 0 || n > TEXT_BYTES_MAX)
        return n < 0 ? -EINVAL : -E2BIG;
    if (n < TEXT_BYTES)
        return mk_response_send(req, status, type, mk_str(text, (size_t)n));
    char *all = mk_arena_alloc(mk_request_arena(req), (size_t)n + 1);
    if (!all)
        return -ENOMEM;
    va_start(args, format);
    vsnprintf(all, (size_t)n + 1, format, args);
    va_end(args);
    int err = begin_response(req, status, type);
    return end_response(req, err == 0 ? mk_response_write_ref(req, mk_str(all, (size_t)n)) : err);
}

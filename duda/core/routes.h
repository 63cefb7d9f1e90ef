// SPDX-License-Identifier: Apache-2.0
/*
 * Routes in a tree of segments. Pure: it reads a method and a path, and finds the route.
 *
 *     GET /users/me   GET /users/:id   GET /users/:id/files/ and *path
 *
 *     (root) ─► users ─┬► me
 *                      └► :id ─► files ─► *path
 *
 * Where several patterns match a path, the first segment in which they differ decides: a static one wins over ":name",
 * and that over "*name", in any order of registration. A pattern whose methods do not include that of the request is
 * passed over. A pattern "/a" does not match "/a/", nor does "/a/" match "/a"; "*name" matches the rest behind a slash,
 * which may be empty.
 */
#ifndef DUDA_CORE_ROUTES_H
#define DUDA_CORE_ROUTES_H

#include <duda/router.h>
#include <monkey/request.h>

enum { ROUTES_SEGMENTS_MAX = 32, ROUTES_PATTERN_BYTES_MAX = 1024 };

/* Methods are sets of bits, 1 << enum mk_method. */
typedef uint16_t route_methods;
enum {
    ROUTES_KNOWN =
        1 << MK_GET | 1 << MK_HEAD | 1 << MK_POST | 1 << MK_PUT | 1 << MK_DELETE | 1 << MK_OPTIONS | 1 << MK_PATCH,
    ROUTES_ANY = ROUTES_KNOWN | 1 << MK_METHOD_OTHER, /* a route for all methods, that other routes do not have */
};

/* A callback before or after the handler. */
struct route_hook {
    struct route_hook *next;
    duda_before_fn before;
    duda_request_fn after;
};

struct duda_route {
    struct duda_route *next;         /* in the order of registration */
    struct duda_route *next_at_node; /* with the same pattern, but for the names */
    struct mk_str pattern;
    route_methods methods;
    duda_request_fn handler;
    unsigned n;                 /* parameters */
    const struct mk_str *names; /* theirs, in the order of the pattern */
    struct route_hook *before, *after;
    size_t body_bytes_max; /* 0: MaxRequestSize */
    uint32_t timeout_ms;   /* 0: none but HandlerTimeout */
    bool in_pieces;
    uint16_t row; /* its row in struct counts, from 1; 0: none */
};

enum route_end { ROUTES_PLAIN, ROUTES_SLASH, ROUTES_REST, ROUTES_ENDS };

struct route_node {
    struct mk_str segment;
    struct route_node **statics; /* sorted by their segment */
    uint32_t n;
    struct route_node *param;
    struct duda_route *ends[ROUTES_ENDS];
};

struct routes {
    struct route_node root;
    struct duda_route *first, *last;
};

struct route_match {
    const struct duda_route *route; /* NULL: none matches */
    route_methods allow;            /* of the patterns that match the path, if none has the method */
    bool has_slash_form;            /* no pattern matches the path, but one does with a slash behind it */
    unsigned n;
    struct mk_str values[ROUTES_SEGMENTS_MAX]; /* of route->names; they point into the path */
};

/*
 * Adds a route. Returns it, or NULL with what is wrong in `*ret_problem`, which is else NULL. The pattern and the tree
 * lie in `arena`.
 */
struct duda_route *routes_add(struct routes *routes, struct mk_arena *arena, route_methods methods,
                              struct mk_str pattern, const char **ret_problem);

/* Finds the route of a path below the service: "", "/", "/a" ... Returns true if there is one. */
bool routes_match(const struct routes *routes, enum mk_method method, struct mk_str path, struct route_match *ret);

/* Reads names of methods: "GET, POST". Returns 0 for an empty list, or one with a name that is not in the list. */
route_methods routes_read_methods(struct mk_str list);
/* Appends the names of methods: "GET, POST", or "ANY". */
void routes_list_methods(struct mk_buf *out, route_methods methods);

/* Adds HEAD, if GET is allowed, and OPTIONS, which the framework answers. */
static inline route_methods routes_allow(route_methods methods)
{
    return (route_methods)(methods | 1 << MK_OPTIONS | (methods & 1 << MK_GET ? 1 << MK_HEAD : 0));
}

/*
 * Cuts the first segment off a path that begins with a slash. Returns it; what is left is empty or begins with a slash.
 */
static inline struct mk_str routes_cut_segment(struct mk_str *path)
{
    assert(path->len && path->p[0] == '/');
    const char *begin = path->p + 1, *end = path->p + path->len, *slash = memchr(begin, '/', (size_t)(end - begin));
    slash = slash ? slash : end;
    *path = mk_str(slash, (size_t)(end - slash));
    return mk_str(begin, (size_t)(slash - begin));
}

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * Routes: patterns for paths in a tree of segments. A pure lookup, which knows neither requests nor handlers: it takes
 * a method and a path, and finds the route. mk_server_handle() (<monkey/embed.h>) and the web services of Duda use it.
 *
 *     GET /users/me   GET /users/:id   GET /users/:id/files/ and *path
 *
 *     (root) ─► users ─┬► me
 *                      └► :id ─► files ─► *path
 *
 * Where several patterns match a path, the first segment in which they differ decides: a static one wins over ":name",
 * and that over "*name", in any order of registration. A pattern whose methods do not include that of the request is
 * passed over. HEAD is answered by a route for GET, if none has HEAD itself. A pattern "/a" does not match "/a/", nor
 * does "/a/" match "/a"; "*name" matches the rest after a slash, which may be empty.
 *
 * Threads: one at a time adds routes; then any number may match paths.
 *
 * libmonkey has these functions; a plugin links the kit: `pkg-config --libs monkey-kit`.
 */
#ifndef MONKEY_ROUTES_H
#define MONKEY_ROUTES_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "../base/arena.h"
#include "../base/buf.h"
#include "../base/str.h"
#include "../request.h"

MK_C_BEGIN

enum { MK_ROUTES_SEGMENTS_MAX = 32, MK_ROUTES_PATTERN_BYTES_MAX = 1024 };

/* A set of methods: bits 1 << enum mk_method. */
typedef uint16_t mk_methods;
enum {
    MK_ROUTES_KNOWN =
        1 << MK_GET | 1 << MK_HEAD | 1 << MK_POST | 1 << MK_PUT | 1 << MK_DELETE | 1 << MK_OPTIONS | 1 << MK_PATCH,
    /* A route for all methods, that other routes do not have. */
    MK_ROUTES_ANY = MK_ROUTES_KNOWN | 1 << MK_METHOD_OTHER,
};

/* One route; embed it in a struct that says what to do (MK_CONTAINER_OF). Only mk_routes_add() writes to it. */
struct mk_route {
    struct mk_route *next;         /* in the order of registration */
    struct mk_route *next_at_node; /* with the same pattern, but for the names */
    struct mk_str pattern;
    mk_methods methods;
    unsigned n;                 /* parameters */
    const struct mk_str *names; /* theirs, in the order of the pattern */
};

enum mk_route_end { MK_ROUTES_PLAIN, MK_ROUTES_SLASH, MK_ROUTES_REST, MK_ROUTES_ENDS };

/* Private to the library. */
struct mk_route_node {
    struct mk_str segment;
    struct mk_route_node **statics; /* sorted by their segment */
    uint32_t n;
    struct mk_route_node *param;
    struct mk_route *ends[MK_ROUTES_ENDS];
};

/* A tree of routes. Zeroed: without any. */
struct mk_routes {
    struct mk_route_node root;
    struct mk_route *first, *last;
};

struct mk_route_match {
    const struct mk_route *route; /* NULL: none matches */
    mk_methods allow;             /* of the patterns that match the path, if none has the method */
    bool has_slash_form;          /* no pattern matches the path, but one does with a slash after it */
    unsigned n;
    struct mk_str values[MK_ROUTES_SEGMENTS_MAX]; /* of route->names; they point into the path */
};

/*
 * Adds `route`, which must live as long as the tree. The pattern is copied; copy and tree lie in `arena`.
 * Returns 0, -EINVAL (the pattern is malformed), -EEXIST (a route has the method and pattern already) or -ENOMEM; after
 * an error `*ret_problem` is what is wrong, as a literal that follows a colon, and else NULL.
 */
MK_API int mk_routes_add(struct mk_routes *routes, struct mk_arena *arena, mk_methods methods, struct mk_str pattern,
                         struct mk_route *route, const char **ret_problem);

/* Finds the route of a path: "", "/", "/a" ... Returns true if there is one. */
MK_API bool mk_routes_match(const struct mk_routes *routes, enum mk_method method, struct mk_str path,
                            struct mk_route_match *ret);

/* Reads names of methods: "GET, POST". Returns 0 for an empty list, or one with a name that is not in the list. */
MK_API mk_methods mk_routes_read_methods(struct mk_str list);
/* Appends the names of methods: "GET, POST", or "ANY". */
MK_API void mk_routes_list_methods(struct mk_buf *out, mk_methods methods);

/* Adds HEAD, if GET is allowed, and OPTIONS, which the user of the routes answers. */
static inline mk_methods mk_routes_allow(mk_methods methods)
{
    return (mk_methods)(methods | 1 << MK_OPTIONS | (methods & 1 << MK_GET ? 1 << MK_HEAD : 0));
}

/*
 * Cuts the first segment off a path that begins with a slash. Returns it; what is left is empty or begins with a slash.
 */
static inline struct mk_str mk_routes_split_segment(struct mk_str *path)
{
    assert(path->len && path->p[0] == '/');
    const char *begin = path->p + 1, *end = path->p + path->len,
               *slash = (const char *)memchr(begin, '/', (size_t)(end - begin));
    slash = slash ? slash : end;
    *path = mk_str(slash, (size_t)(end - slash));
    return mk_str(begin, (size_t)(slash - begin));
}

MK_C_END

#endif

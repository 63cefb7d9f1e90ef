// SPDX-License-Identifier: Apache-2.0
/*
 * The object `router`: which function handles which requests.
 *
 *     struct duda_route *r = router->get("/users/:id", show_user);
 *     router->post("/files/" "*path", store_file);
 *
 * A pattern is compared with the decoded path below the service's URL, segment by segment:
 *
 *     "/users/me"    this path
 *     ":name"        one segment of any text, but not an empty one: param->get(dr, "name")
 *     "*name"        as the last segment: all that follows the slash, which may be empty
 *
 * If several patterns match, the first segment in which they differ decides: a static one wins over ":name", and that
 * over "*name". The order of registration does not matter. A path for which no pattern matches is redirected to the
 * same path with a slash, if a pattern matches that: by 301 for GET and HEAD, and by 308 for other methods.
 *
 * group() gives several routes a prefix, callbacks and limits.
 *
 * The framework answers HEAD by the route for GET, OPTIONS with the methods of the path, a path that has routes for
 * other methods only with 405, and other paths with 404. If the service has a DocumentRoot, its files come after the
 * routes: a path without a route, and GET and HEAD of one without a route for GET, are looked up there. After the
 * routes of a service that is the root of its host come the files of the host, unless it has a DocumentRoot or has
 * called not_found().
 */
#ifndef DUDA_ROUTER_H
#define DUDA_ROUTER_H

#include "types.h"

struct duda_route;

/*
 * Is called before the handler, and before the request's body is read.
 * Returns 0, after which the request continues, unless this function has ended the response; or another value: this
 * function has ended the response, will end it, or will call router->next().
 */
typedef int (*duda_before_fn)(duda_request_t *dr);

/* Responds to a request for which the framework would send its page for `status`. */
typedef void (*duda_error_fn)(duda_request_t *dr, int status);

/* `delete` is a keyword of C++. */
#ifdef __cplusplus
#define DUDA_ROUTER_DELETE delete_
#else
#define DUDA_ROUTER_DELETE delete
#endif

/* All functions but next() and pattern() are only for duda_main(). */
struct duda_api_router {
    /*
     * Add a route for one method; any(): for all methods that have no route with the same pattern, except CONNECT and
     * TRACE. They return the route, or NULL, which is logged: the pattern is malformed or has more than 32 segments or
     * 1,024 bytes, or there is such a route already. Parameters of other names do not make a pattern another one.
     */
    struct duda_route *(*get)(const char *pattern, duda_request_fn handler);
    struct duda_route *(*post)(const char *pattern, duda_request_fn handler);
    struct duda_route *(*put)(const char *pattern, duda_request_fn handler);
    struct duda_route *(*DUDA_ROUTER_DELETE)(const char *pattern, duda_request_fn handler);
    struct duda_route *(*patch)(const char *pattern, duda_request_fn handler);
    struct duda_route *(*any)(const char *pattern, duda_request_fn handler);
    /* Adds a route for a list of methods: "GET, POST". Returns as get(). */
    struct duda_route *(*add)(const char *methods, const char *pattern, duda_request_fn handler);

    /*
     * Add a callback that runs before the handler: of all routes, or of one. Those of all routes come first, and each
     * kind runs in the order in which they were added. They return 0, or -EINVAL (`route` is NULL), -EPERM or -ENOMEM.
     */
    int (*before_all)(duda_before_fn fn);
    int (*before)(struct duda_route *route, duda_before_fn fn);
    /*
     * Add a callback that runs when the head of the response is about to be sent: it may still change the status and
     * add headers. after_all() is for all responses of the service, pages for errors included, but not for files. Order
     * and results as above.
     */
    int (*after_all)(duda_request_fn fn);
    int (*after)(struct duda_route *route, duda_request_fn fn);

    /*
     * Limits the body to `bytes`; a longer one gets 413. With stream_body() only the announced length is compared. 0,
     * the default, is MaxRequestSize; MaxBodySize is the limit of all. Returns 0, -EINVAL or -EPERM.
     */
    int (*limit)(struct duda_route *route, size_t bytes);
    /*
     * Sends 503 if the response has not begun `ms` milliseconds after the handler was called. 0, the default: only
     * HandlerTimeout applies. Returns 0, -EINVAL or -EPERM.
     */
    int (*timeout)(struct duda_route *route, uint32_t ms);
    /*
     * Calls the handler when the head of the request is complete; the handler reads the body itself. Without this call
     * the framework reads the whole body, and calls the handler then. Returns 0, -EINVAL or -EPERM.
     */
    int (*stream_body)(struct duda_route *route);

    /*
     * Sets the function for all errors with the status 404 below the URL of the service: paths without a route and
     * without a file, access rules, response->error(). Returns 0 or -EPERM.
     */
    int (*not_found)(duda_request_fn fn);
    /*
     * Sets the function for other errors below the URL of the service, which for a root service is that of the host,
     * wherever they are found: 405, 413, 416, 501, 503 of a timeout, those of access rules and of response->error()
     * ...; also 404 if not_found() was not called. The status is set already. Returns 0 or -EPERM.
     *
     * The server's own page remains for what comes before the path is accepted: 400 of a malformed request, 404 of a
     * path with a dot next to %2F, 405 of CONNECT, 408 of a late head, 414, 417, 431, 501 of a transfer coding, 505;
     * and for the redirect that adds a slash.
     *
     * Where the server has responded already, by its own page, these functions make its body only: they end the
     * response before they return, with up to 8 KB and without generators; otherwise, and after response->error(), the
     * page stays. The request is another one than that of the handler, ends when they return, and may come from a
     * client that access rules refuse. Calls that need it longer are -EPERM: wait(), ticket(), sse_begin(),
     * redirect(), request->read(), dthread->handle().
     */
    int (*error)(duda_error_fn fn);

    /*
     * Continues with a request that a callback of before() has stopped, once it knows that it may.
     * Returns 0 or -EINVAL (the request does not wait for this).
     */
    int (*next)(duda_request_t *dr);
    /* Returns the pattern of the request's route, "/users/:id"; NULL without one. Valid as long as the service. */
    const char *(*pattern)(duda_request_t *dr);

    /*
     * Calls the handler in a dthread of the request (dthread.h), as dthread->handle() does: it may wait in straight
     * code, and must respond before it returns. It is not called if the request has ended before. If there is no stack
     * for it the client gets 503. Returns 0, -EINVAL or -EPERM.
     */
    int (*in_dthread)(struct duda_route *route);

    /*
     * Calls `add` at once: the routes that it adds are those of a group. `prefix`, "/api" or "" for none, comes before
     * their patterns, which begin with a slash or are empty; it may have parameters. The result is for before(),
     * after(), limit(), timeout(), stream_body() and in_dthread(), also after `add`: what they set is for all routes of
     * the group. Callbacks of the group run before those of a route; of limits and timeouts, one that a route has
     * itself is used. `add` may call group(): callbacks of the outer group run first, and the inner one's limits are
     * used. before_all() comes before all groups.
     *
     *     struct duda_route *api = router->group("/api", add_api);
     *     router->before(api, check_token);
     *
     * Returns the group; or NULL, which is logged, if `prefix` or `add` is NULL, the prefix does not begin with a slash
     * in another group, or there is no memory: `add` was not called then.
     */
    struct duda_route *(*group)(const char *prefix, void (*add)(void));
};

DUDA_OBJECT(struct duda_api_router, router)

#endif

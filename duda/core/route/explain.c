// SPDX-License-Identifier: Apache-2.0
/*
 * Finds the route of a request without calling the service (explain.h).
 */
#include "route/explain.h"

#include "route/dispatch.h"
#include "route/router.h"

static enum mk_method find_method(struct mk_str name)
{
    mk_methods bit = mk_routes_read_methods(name);
    return bit ? (enum mk_method)__builtin_ctz(bit) : MK_METHOD_OTHER;
}

static void explain_route(const struct host_service *found, const struct mk_host *host, struct mk_explain *e,
                          struct mk_str rest)
{
    struct mk_route_match match = {.route = NULL};
    struct mk_str name = found->conf->name;
    enum router_result result = router_match(found->service, find_method(e->method), rest, e->query.p, &match);
    switch (result) {
    case ROUTER_FOUND:
        mk_explain_add(e, host, found->conf, MK_EXPLAIN_ANSWERS, "the service %.*s, by the route %.*s",
                       MK_STR_ARG(name), MK_STR_ARG(match.route->pattern));
        return;
    case ROUTER_SLASH:
    case ROUTER_SLASH_OLD:
        mk_explain_add(e, host, found->conf, MK_EXPLAIN_ANSWERS,
                       "the service %.*s redirects to the path with a slash behind it", MK_STR_ARG(name));
        return;
    default:
        mk_explain_add(e, host, found->conf,
                       dispatch_leaves_file(found->service, rest) ? MK_EXPLAIN_NOTE : MK_EXPLAIN_ANSWERS,
                       "the service %.*s has no route for %s: %s", MK_STR_ARG(name),
                       result == ROUTER_METHOD ? "the method" : "the path",
                       dispatch_leaves_file(found->service, rest) ? "its files are asked" : "it answers 404 or 405");
    }
}

void explain_service(const struct duda_host *h, const struct mk_host *host, struct mk_explain *e)
{
    struct mk_str rest;
    const struct host_service *found = h && e->phase == MK_EXPLAIN_CONTENT ? host_find(h, e->path, &rest) : NULL;
    if (!found)
        return;
    if (found->service)
        explain_route(found, host, e, rest);
    else
        mk_explain_add(e, host, found->conf, MK_EXPLAIN_ANSWERS, "503, because the service %.*s could not be loaded",
                       MK_STR_ARG(found->conf->name));
}

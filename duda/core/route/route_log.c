// SPDX-License-Identifier: Apache-2.0
/*
 * Writes the routes of a service into the log (route_log.h).
 */
#include "route/route_log.h"

#include "route/router.h"

#include <dlfcn.h>
#include <inttypes.h>

struct listing {
    const struct service *service;
    unsigned n;
};

/* Returns the address of a function in its shared object; 0 if it is in none. */
static uintptr_t find_offset(duda_request_fn fn)
{
    Dl_info info;
    uintptr_t address = (uintptr_t)fn;
    return dladdr((const void *)address, &info) ? address - (uintptr_t)info.dli_fbase : 0;
}

static void log_route(struct duda_route *route, struct mk_str methods, struct mk_str pattern, void *ctx)
{
    struct listing *listing = ctx;
    listing->n++;
    mk_log_debug("service %s: route %.*s %.*s at 0x%" PRIxPTR, listing->service->self.name.data, MK_STR_ARG(methods),
                 MK_STR_ARG(pattern), find_offset(route->handler));
}

void route_log_write(const struct service *s)
{
    if (!mk_log_wants(MK_LOG_DEBUG))
        return;
    struct listing listing = {s, 0};
    router_list(s->router, log_route, &listing);
    mk_log_debug("service %s: %u routes", s->self.name.data, listing.n);
}

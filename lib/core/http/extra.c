// SPDX-License-Identifier: Apache-2.0
/*
 * What only some exchanges need (http/extra.h).
 */
#include "http/extra.h"

static void release_extra(void *ctx)
{
    struct mk_request *req = ctx;
    while (req->extra->first_interim)
        mk__interim_drop_first(req);
}

struct mk__extra *mk__extra_get(struct mk_request *req)
{
    if (req->extra)
        return req->extra;
    struct mk__extra *extra = mk_arena_zalloc(&req->arena, sizeof(*extra));
    if (!extra || mk_arena_defer(&req->arena, release_extra, req) < 0)
        return NULL;
    return req->extra = extra;
}

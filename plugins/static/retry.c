// SPDX-License-Identifier: Apache-2.0
/*
 * Requests that are served again a moment later (retry.h).
 */
#include "retry.h"

#include <monkey/base/arena.h>
#include <monkey/plugin.h>

#include <errno.h>

enum { RETRY_MS = 1 };

/* In the request's arena. */
struct retry {
    struct mk_timer timer;
    struct mk_request *req;
    struct static_location at;
    int (*serve)(struct mk_request *req, const struct static_location *at);
};

static void on_timer(struct mk_timer *timer)
{
    struct retry *r = MK_CONTAINER_OF(timer, struct retry, timer);
    if (r->serve(r->req, &r->at) == MK_DECLINED)
        mk_request_decline(r->req);
}

static void cancel_retry(void *ctx)
{
    struct retry *r = ctx;
    mk_timer_cancel(&r->timer);
}

int mk__static_retry_arm(struct mk_request *req, const struct static_location *at,
                         int (*serve)(struct mk_request *req, const struct static_location *at))
{
    struct retry *r = mk_arena_alloc(mk_request_arena(req), sizeof(*r));
    if (!r)
        return -ENOMEM;
    *r = (struct retry){.req = req, .at = *at, .serve = serve};
    mk_timer_init(&r->timer, on_timer);
    int err = mk_arena_defer(mk_request_arena(req), cancel_retry, r);
    if (err == 0)
        mk_timer_arm(mk_request_loop(req), &r->timer, RETRY_MS);
    return err;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * later: a content handler that answers when its time has come. GET /later?250 is answered after 250 milliseconds;
 * the worker serves others meanwhile.
 *
 *     cc -shared -fPIC $(pkg-config --cflags monkey) later.c -o later.so
 *
 *     [PLUGINS]
 *         Load liana ./later.so static
 */
#include <monkey/plugin.h>

enum { DELAY_MS_MAX = 10000 };

/* What belongs to one answer. It lives in the request's memory, and ends with it. */
struct answer {
    struct mk_timer timer;
    struct mk_request *req;
};

static void speak(struct mk_timer *timer)
{
    struct answer *a = MK_CONTAINER_OF(timer, struct answer, timer);
    mk_response_header_ref(a->req, MK_STR("Content-Type"), MK_STR("text/plain"));
    if (mk_response_write_ref(a->req, MK_STR("Now.\n")) < 0)
        mk_response_abort(a->req); /* half an answer must not look like a whole one */
    else
        mk_response_end(a->req);
}

/* The client has left, or HandlerTimeout has answered: the timer must not find a request that is gone. */
static void forget(void *ctx)
{
    struct answer *a = ctx;
    mk_timer_cancel(&a->timer);
}

static int answer_later(struct mk_request *req)
{
    uint64_t delay_ms = 0;
    if (!mk_str_eq(mk_request_path(req), MK_STR("/later")))
        return MK_DECLINED; /* not mine: the next plugin is asked */
    if (!mk_str_u64(mk_request_query(req), DELAY_MS_MAX, &delay_ms)) {
        mk_response_error(req, 400);
        return 0;
    }
    struct answer *a = mk_arena_zalloc(mk_request_arena(req), sizeof(*a));
    if (!a || mk_arena_defer(mk_request_arena(req), forget, a) < 0)
        return -1; /* 500, and a line in the log */
    a->req = req;
    mk_timer_init(&a->timer, speak);
    mk_timer_arm(mk_request_loop(req), &a->timer, (uint32_t)delay_ms);
    return 0; /* I have it */
}

MK_PLUGIN(later) = {
    MK_PLUGIN_HEAD("later", "1.0", "answers after a while"),
    .on_content = answer_later,
};

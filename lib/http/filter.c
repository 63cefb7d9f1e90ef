// SPDX-License-Identifier: Apache-2.0
/*
 * Filters of a response's body. The first one reads the handler's queue of parts, whatever they are; how much of
 * it in one turn is limited here, so that no filter needs to think of the worker's other connections.
 */
#include "http/queue.h"

#include <errno.h>

enum { TURN_BYTES = 64 * 1024 };

struct mk_filter {
    struct mk_request *req;
    struct mk_filter *below; /* NULL: the queue */
    mk_filter_fn fn;
    void *ctx;
    struct mk__queue queue; /* for the first one */
    size_t turn;            /* bytes of it in this turn */
};

int mk_response_filter(struct mk_request *req, mk_filter_fn fn, void *ctx)
{
    if (req->head_sent)
        return -EALREADY;
    struct mk_filter *f = mk_arena_alloc(&req->arena, sizeof(*f));
    if (!f)
        return -ENOMEM;
    *f = (struct mk_filter){.req = req, .below = req->filter, .fn = fn, .ctx = ctx, .queue.req = req};
    f->queue.length_known = mk_response_length_get(req, &f->queue.length);
    req->length_known = false;
    req->filter = f;
    return 0;
}

static ssize_t read_queue(struct mk_filter *f, char *to, size_t size)
{
    if (f->turn >= TURN_BYTES)
        return -EBUSY;
    ssize_t n = mk__queue_read(&f->queue, to, size);
    if (n > 0)
        f->turn += (size_t)n;
    return n;
}

ssize_t mk_filter_read(struct mk_filter *f, char *to, size_t size)
{
    return f->below ? f->below->fn(f->below, to, size, f->below->ctx) : read_queue(f, to, size);
}

struct mk_request *mk_filter_request(const struct mk_filter *f)
{
    return f->req;
}

ssize_t mk__filter_run(struct mk_request *req, char *to, size_t size)
{
    return req->filter->fn(req->filter, to, size, req->filter->ctx);
}

void mk__filter_turn(struct mk_request *req)
{
    struct mk_filter *f = req->filter;
    while (f->below)
        f = f->below;
    f->turn = 0;
}

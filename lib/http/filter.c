// SPDX-License-Identifier: Apache-2.0
/*
 * Filters of the response body. The first filter reads the queue of parts. Its input in one turn is limited here, so
 * that the other connections of the thread get their turns.
 */
#include "http/parts.h"

#include <assert.h>
#include <errno.h>

enum { TURN_BYTES = 64 * 1024 };

struct mk_filter {
    struct mk_request *req;
    struct mk_filter *source; /* NULL: the queue of parts */
    mk_filter_fn fn;
    void *ctx;
    struct mk__parts_reader parts; /* of the first filter: its input */
    size_t turn_bytes;             /* read from `parts` in this turn */
};

int mk_response_filter(struct mk_request *req, mk_filter_fn fn, void *ctx)
{
    assert(fn);
    if (req->output_state >= MK__OUTPUT_HEAD)
        return -EALREADY;
    struct mk_filter *f = mk_arena_alloc(&req->arena, sizeof(*f));
    if (!f)
        return -ENOMEM;
    *f = (struct mk_filter){.req = req, .source = req->filter, .fn = fn, .ctx = ctx, .parts.req = req};
    f->parts.length_known = mk_response_get_length(req, &f->parts.length);
    req->framing = MK__FRAMING_NONE; /* the length of the parts is kept in `f`; that of the output is not known */
    req->filter = f;
    return 0;
}

static ssize_t read_parts(struct mk_filter *f, char *to, size_t size)
{
    assert(!f->source);
    if (f->turn_bytes >= TURN_BYTES)
        return -EBUSY; /* the protocol calls again in the next turn */
    ssize_t n = mk__parts_read(&f->parts, to, size);
    if (n > 0)
        f->turn_bytes += (size_t)n;
    return n;
}

ssize_t mk_filter_read(struct mk_filter *f, char *to, size_t size)
{
    return f->source ? f->source->fn(f->source, to, size, f->source->ctx) : read_parts(f, to, size);
}

struct mk_request *mk_filter_request(const struct mk_filter *f)
{
    return f->req;
}

ssize_t mk__filter_read_output(struct mk_request *req, char *to, size_t size)
{
    ssize_t n = req->filter->fn(req->filter, to, size, req->filter->ctx);
    assert(n <= (ssize_t)size);
    bool parts_left = req->first || req->response_state == MK__RESPONSE_OPEN;
    return n == 0 && parts_left ? -EPIPE : n; /* a filter must not end before its input */
}

void mk__filter_begin_turn(struct mk_request *req)
{
    struct mk_filter *f = req->filter;
    while (f->source)
        f = f->source;
    f->turn_bytes = 0;
}

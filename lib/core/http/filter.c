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
    bool ended;                    /* it has returned 0, and is not called any more */
    char *output;                  /* of the last filter: MK_FILTER_BYTES_MIN for bytes without room; or NULL */
    size_t output_at, output_len;
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
    assert(size >= MK_FILTER_BYTES_MIN);
    if (!f->source)
        return read_parts(f, to, size);
    ssize_t n = f->source->ended ? 0 : f->source->fn(f->source, to, size, f->source->ctx);
    f->source->ended = n == 0;
    return n;
}

struct mk_request *mk_filter_request(const struct mk_filter *f)
{
    return f->req;
}

static ssize_t call_filter(struct mk_request *req, struct mk_filter *f, char *to, size_t size)
{
    ssize_t n = f->fn(f, to, size, f->ctx);
    assert(n <= (ssize_t)size);
    bool parts_left = req->first || req->response_state == MK__RESPONSE_OPEN;
    return n == 0 && parts_left ? -EPIPE : n; /* a filter must not end before its input */
}

/* Fills the buffer of the last filter. Returns as mk__filter_read_output(). */
static ssize_t fill_output(struct mk_request *req, struct mk_filter *f)
{
    if (!f->output)
        f->output = mk_arena_alloc(&req->arena, MK_FILTER_BYTES_MIN);
    if (!f->output)
        return -ENOMEM;
    ssize_t n = call_filter(req, f, f->output, MK_FILTER_BYTES_MIN);
    f->output_at = 0;
    f->output_len = n > 0 ? (size_t)n : 0;
    return n;
}

/* The room is less than a filter is promised if a window of HTTP/2 has only a few bytes left. */
ssize_t mk__filter_read_output(struct mk_request *req, char *to, size_t size)
{
    struct mk_filter *f = req->filter;
    if (!f->output_len && size >= MK_FILTER_BYTES_MIN)
        return call_filter(req, f, to, size);
    ssize_t n = f->output_len ? 1 : fill_output(req, f);
    if (n <= 0)
        return n;
    size_t bytes = f->output_len < size ? f->output_len : size;
    memcpy(to, f->output + f->output_at, bytes);
    f->output_at += bytes;
    f->output_len -= bytes;
    return (ssize_t)bytes;
}

static struct mk_filter *get_first(struct mk_request *req)
{
    struct mk_filter *f = req->filter;
    while (f->source)
        f = f->source;
    return f;
}

void mk__filter_change_input(struct mk_request *req, uint64_t bytes)
{
    struct mk_filter *f = get_first(req);
    assert(req->output_state < MK__OUTPUT_HEAD && !f->parts.read);
    f->parts.length_known = true;
    f->parts.length = bytes;
    req->framing = MK__FRAMING_NONE;
}

void mk__filter_begin_turn(struct mk_request *req)
{
    get_first(req)->turn_bytes = 0;
}

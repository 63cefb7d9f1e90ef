// SPDX-License-Identifier: Apache-2.0
/*
 * Filters of a response's body. The first one reads the handler's queue of parts, whatever they are; how much of
 * it in one turn is limited here, so that no filter needs to think of the worker's other connections.
 */
#include "http/load.h"
#include "http/request.h"

#include <errno.h>

enum { TURN_BYTES = 64 * 1024, LOAD_BYTES = 256 * 1024 };

struct mk_filter {
    struct mk_request *req;
    struct mk_filter *below; /* NULL: the queue */
    mk_filter_fn fn;
    void *ctx;
    /* of the queue, for the first one */
    bool length_known;
    uint64_t length, read;
    size_t turn;
};

/* ── the queue ── */

static ssize_t read_memory(struct mk__part *part, char *to, size_t size)
{
    size_t n = part->left < size ? part->left : size;
    memcpy(to, part->data, n);
    part->data += n;
    return (ssize_t)n;
}

static ssize_t read_file(struct mk_request *req, struct mk__part *part, char *to, size_t size)
{
    size_t want = part->left < size ? part->left : size;
    if (req->loading)
        return -EAGAIN;
    ssize_t n = mk__load_cached(part->fd, to, want, part->at, part->at + want <= part->warm_to);
    if (n != -EAGAIN)
        return n == 0 ? -EIO /* the file has shrunk */ : n;
    int err = mk__load_start(req, part->left < LOAD_BYTES ? part->left : LOAD_BYTES, false);
    return err < 0 ? err : -EAGAIN;
}

/* The next bytes of the first part; 0 when it has none left. */
static ssize_t read_part(struct mk_request *req, struct mk__part *part, char *to, size_t size)
{
    if (part->kind == MK__PART_GENERATOR)
        return part->generate(req, to, size, part->ctx);
    if (part->left == 0)
        return 0;
    ssize_t n = part->kind == MK__PART_MEMORY ? read_memory(part, to, size) : read_file(req, part, to, size);
    if (n > 0) {
        part->left -= (size_t)n;
        part->at += (size_t)n;
    }
    return n;
}

/* The handler is told that there is room. False: it had nothing to say. */
static bool drain(struct mk_request *req)
{
    if (!req->drain_wanted || !req->drain_fn)
        return false;
    req->drain_wanted = false;
    req->drain_fn(req, req->drain_ctx);
    return req->first || req->ended;
}

static ssize_t read_queue(struct mk_filter *f, char *to, size_t size)
{
    struct mk_request *req = f->req;
    if (f->turn >= TURN_BYTES)
        return -EBUSY;
    for (;;) {
        if (!req->first && !req->ended && !drain(req))
            return -EAGAIN;
        if (req->failed)
            return -EPIPE;
        if (!req->first)
            return f->length_known && f->read != f->length ? -EPIPE : 0;
        ssize_t n = read_part(req, req->first, to, size);
        if (req->failed)
            return -EPIPE;
        if (n < 0)
            return n;
        f->turn += (size_t)n;
        f->read += (size_t)n;
        if (f->length_known && f->read > f->length)
            return -EMSGSIZE;
        if (n)
            return n;
        mk__response_drop_part(req);
    }
}

/* ── filters ── */

int mk_response_filter(struct mk_request *req, mk_filter_fn fn, void *ctx)
{
    if (req->head_sent)
        return -EALREADY;
    struct mk_filter *f = mk_arena_alloc(&req->arena, sizeof(*f));
    if (!f)
        return -ENOMEM;
    *f = (struct mk_filter){.req = req, .below = req->filter, .fn = fn, .ctx = ctx};
    f->length_known = mk_response_length_get(req, &f->length);
    req->length_known = false;
    req->filter = f;
    return 0;
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

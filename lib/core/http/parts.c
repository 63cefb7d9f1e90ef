// SPDX-License-Identifier: Apache-2.0
/*
 * Reads the queue of parts (http/parts.h). The caller limits how much it reads in one turn.
 */
#include "http/parts.h"

#include "http/file_read.h"

#include <assert.h>
#include <errno.h>

enum { DISK_READ_BYTES = 256 * 1024 };

static ssize_t read_memory(struct mk__part *part, char *to, size_t size)
{
    size_t n = part->left < size ? part->left : size;
    memcpy(to, part->data, n);
    return (ssize_t)n;
}

static ssize_t read_file(struct mk_request *req, struct mk__part *part, char *to, size_t size)
{
    size_t want = part->left < size ? part->left : size;
    assert(req->file_read || part->fd >= 0);
    if (req->file_read)
        return -EAGAIN;
    ssize_t n = mk__file_read_cached(part->fd, to, want, part->at, part->at + want <= part->cached_until);
    if (n != -EAGAIN)
        return n == 0 ? -EIO /* the file has shrunk */ : n;
    int err = mk__file_read_start(req, part->left < DISK_READ_BYTES ? part->left : DISK_READ_BYTES, false);
    return err < 0 ? err : -EAGAIN;
}

/* Reads from a part. Returns the number of bytes, 0 at its end, -EAGAIN or another -errno. */
static ssize_t read_part(struct mk_request *req, struct mk__part *part, char *to, size_t size)
{
    if (part->kind == MK__PART_GENERATOR)
        return part->generate(req, to, size, part->ctx);
    if (part->left == 0)
        return 0;
    ssize_t n = part->kind == MK__PART_MEMORY ? read_memory(part, to, size) : read_file(req, part, to, size);
    if (n > 0)
        mk__part_advance(part, (size_t)n);
    return n;
}

/* Calls the on_writable function of the handler, if it waits. Returns false if that has queued nothing. */
static bool call_writable_fn(struct mk_request *req)
{
    if (!mk__request_wants_writable(req))
        return false;
    mk__response_call_writable(req);
    return req->first || req->response_state != MK__RESPONSE_OPEN;
}

size_t mk__parts_peek(const struct mk__parts_reader *q, const struct iovec *to, int pieces)
{
    const struct mk__part *part = q->req->first;
    if (!part || part->kind != MK__PART_FILE || part->fd < 0)
        return 0;
    ssize_t n = mk__file_read_cached_pieces(part->fd, to, pieces, part->at, part->cached_until == UINT64_MAX);
    return n < 0 ? 0 : (uint64_t)n < part->left ? (size_t)n : (size_t)part->left;
}

void mk__parts_skip(struct mk__parts_reader *q, size_t bytes)
{
    mk__part_advance(q->req->first, bytes);
    q->read += bytes;
}

ssize_t mk__parts_read(struct mk__parts_reader *q, char *to, size_t size)
{
    struct mk_request *req = q->req;
    assert(size > 0);
    for (;;) {
        if (!req->first && req->response_state == MK__RESPONSE_OPEN && !call_writable_fn(req))
            return -EAGAIN;
        if (req->response_state == MK__RESPONSE_FAILED)
            return -EPIPE;
        if (!req->first)
            return q->length_known && q->read != q->length ? -EPIPE : 0;
        ssize_t n = read_part(req, req->first, to, size);
        if (req->response_state == MK__RESPONSE_FAILED)
            return -EPIPE;
        if (n < 0)
            return n;
        assert((size_t)n <= size); /* a generator writes no more than its room */
        q->read += (size_t)n;
        if (q->length_known && q->read > q->length)
            return -EMSGSIZE;
        if (n)
            return n;
        mk__response_drop_part(req);
    }
}

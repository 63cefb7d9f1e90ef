// SPDX-License-Identifier: Apache-2.0
/*
 * Reads the queue of parts (http/parts.h). The caller limits how much it reads in one turn.
 */
#include "http/parts.h"

#include "http/file_read.h"

#include <errno.h>

enum { DISK_READ_BYTES = 256 * 1024 };

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
    if (n > 0) {
        part->left -= (size_t)n;
        part->at += (size_t)n;
    }
    return n;
}

/* Calls the on_writable function of the handler, if it waits. Returns false if that has queued nothing. */
static bool call_writable_fn(struct mk_request *req)
{
    if (!req->writable_wanted || !req->writable_fn)
        return false;
    req->writable_wanted = false;
    req->writable_fn(req, req->writable_ctx);
    return req->first || req->ended;
}

ssize_t mk__parts_read(struct mk__parts_reader *q, char *to, size_t size)
{
    struct mk_request *req = q->req;
    for (;;) {
        if (!req->first && !req->ended && !call_writable_fn(req))
            return -EAGAIN;
        if (req->failed)
            return -EPIPE;
        if (!req->first)
            return q->length_known && q->read != q->length ? -EPIPE : 0;
        ssize_t n = read_part(req, req->first, to, size);
        if (req->failed)
            return -EPIPE;
        if (n < 0)
            return n;
        q->read += (size_t)n;
        if (q->length_known && q->read > q->length)
            return -EMSGSIZE;
        if (n)
            return n;
        mk__response_drop_part(req);
    }
}

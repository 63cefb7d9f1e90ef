// SPDX-License-Identifier: Apache-2.0
/*
 * Reads a response (download.h).
 */
#include "download.h"

#include <assert.h>
#include <errno.h>

enum { HEAD_READ_BYTES = 4096 }; /* with a head; what is behind that may go by splice(2) */

void download_begin(struct download *d, const struct mk_response_limits *limits, enum mk_response_to to)
{
    d->limits = limits;
    mk_response_parser_init(&d->parser, limits, to);
    d->kept_len = d->rest_len = 0;
    d->has_begun = d->has_excess = d->has_failed = false;
    mk_buf_init(&d->trailers, limits->chunked.trailer_bytes_max);
}

void download_release(struct download *d)
{
    mk_buf_release(&d->trailers);
}

static ssize_t receive(struct download *d, struct backend_conn *conn, char *to, size_t size)
{
    ssize_t n = backend_read(conn, to, size);
    d->has_begun |= n > 0;
    d->has_failed |= n < 0 && n != -EAGAIN;
    return n;
}

/* ── heads ── */

/* Keeps the beginning of a head for the next call, with its fields. Returns -EAGAIN or -ENOMEM. */
static int keep(struct download *d, struct mk_arena *arena, const char *bytes, size_t len)
{
    if (!d->kept) {
        size_t fields_bytes = d->limits->fields_max * sizeof(*d->fields);
        struct mk_field *fields = mk_arena_alloc(arena, fields_bytes);
        d->kept = fields ? mk_arena_alloc(arena, d->limits->head_bytes_max) : NULL;
        if (!d->kept)
            return -ENOMEM;
        memcpy(fields, d->fields, fields_bytes);
        d->fields = fields;
    }
    assert(len <= d->limits->head_bytes_max); /* the parser refuses longer ones */
    memcpy(d->kept, bytes, len);
    d->kept_len = len;
    return -EAGAIN;
}

int download_move(struct download *to, struct download *from, struct mk_arena *arena)
{
    *to = *from;
    to->kept = NULL;
    if (from->kept && keep(to, arena, from->kept, from->kept_len) != -EAGAIN)
        return -ENOMEM;
    if (to->parser.chunked.trailers)
        to->parser.chunked.trailers = &to->trailers;
    mk_buf_init(&from->trailers, 0);
    return 0;
}

/*
 * Fills the buffer: with what the last head has left, else with what was kept and what comes. Returns the number of
 * bytes, or -errno.
 */
static ssize_t fill(struct download *d, struct backend_conn *conn, char *buffer, size_t size)
{
    size_t len = d->rest_len;
    if (len) {
        memmove(buffer, d->rest, len);
        d->rest_len = 0;
        return (ssize_t)len;
    }
    len = d->kept_len;
    if (len)
        memcpy(buffer, d->kept, len);
    ssize_t n = receive(d, conn, buffer + len, size - len < HEAD_READ_BYTES ? size - len : HEAD_READ_BYTES);
    return n > 0 ? (ssize_t)len + n : n == 0 ? -EPIPE : n;
}

int download_head(struct download *d, struct backend_conn *conn, struct mk_arena *arena, struct mk_field *fields,
                  char *buffer, size_t size, struct mk_str *ret_head)
{
    if (!d->kept)
        d->fields = fields;
    if (d->parser.head_bytes)
        mk_response_parser_next(&d->parser);
    for (;;) {
        ssize_t n = fill(d, conn, buffer, size);
        if (n < 0)
            return (int)n;
        int r = mk_response_parser_head(&d->parser, d->fields, mk_str(buffer, (size_t)n));
        if (r < 0)
            return r;
        if (r == 0) {
            d->kept_len = 0;
            d->rest = buffer + d->parser.head_bytes;
            d->rest_len = (size_t)n - d->parser.head_bytes;
            *ret_head = mk_str(buffer, d->parser.head_bytes);
            return 0;
        }
        r = keep(d, arena, buffer, (size_t)n);
        if (r != -EAGAIN)
            return r;
    }
}

/* ── the body ── */

/* Decodes bytes in place. Returns the number of bytes of data, or -errno. */
static ssize_t decode(struct download *d, char *bytes, size_t len)
{
    size_t used = 0, n = 0;
    while (used < len && !d->parser.is_done) {
        struct mk_str piece;
        ssize_t r = mk_response_parser_body(&d->parser, bytes + used, len - used, &piece);
        if (r < 0)
            return r;
        if (piece.len && piece.p != bytes + n)
            memmove(bytes + n, piece.p, piece.len);
        n += piece.len;
        used += (size_t)r;
    }
    d->has_excess |= used < len;
    return (ssize_t)n;
}

struct mk_str download_first(struct download *d, int *ret_err)
{
    d->parser.chunked.trailers = &d->trailers;
    ssize_t n = decode(d, d->rest, d->rest_len);
    *ret_err = n < 0 ? (int)n : 0;
    d->rest_len = 0;
    return mk_str(d->rest, n < 0 ? 0 : (size_t)n);
}

ssize_t download_body(struct download *d, struct backend_conn *conn, char *to, size_t size)
{
    ssize_t data = 0;
    while (data == 0 && !d->parser.is_done) {
        ssize_t n = receive(d, conn, to, size);
        if (n < 0)
            return n;
        if (n == 0)
            return mk_response_parser_end(&d->parser);
        data = decode(d, to, (size_t)n);
    }
    return data;
}

/* ── by splice(2) ── */

/* Empties the pipe first: what a backend has sent before it fails reaches the client. */
static int drain_pipe(struct pipe *pipe, int fd, size_t size, size_t *moved)
{
    while (pipe->bytes && *moved < size) {
        ssize_t n = pipe_drain(pipe, fd, size - *moved);
        if (n <= 0)
            return n == -EAGAIN ? -EBUSY : n == -EOPNOTSUPP ? -EOPNOTSUPP : -ECONNABORTED;
        *moved += (size_t)n;
    }
    return 0;
}

static ssize_t fill_pipe(struct download *d, struct backend_conn *conn, struct pipe *pipe)
{
    uint64_t left = mk_response_parser_skippable(&d->parser);
    ssize_t n = backend_splice(conn, pipe, left < PIPE_BYTES ? (size_t)left : PIPE_BYTES);
    d->has_failed |= n < 0 && n != -EAGAIN && n != -EOPNOTSUPP;
    if (n == 0)
        return mk_response_parser_end(&d->parser);
    if (n > 0)
        mk_response_parser_skip(&d->parser, (uint64_t)n);
    return n;
}

ssize_t download_splice(struct download *d, struct backend_conn *conn, struct pipe *pipe, int fd, size_t size)
{
    size_t moved = 0;
    for (;;) {
        ssize_t r = drain_pipe(pipe, fd, size, &moved);
        if (r == 0 && moved < size && conn && !d->parser.is_done)
            r = fill_pipe(d, conn, pipe);
        if (r <= 0)
            return moved ? (ssize_t)moved : r;
    }
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Reads a response.
 */
#include "exchange.h"

#include <assert.h>
#include <errno.h>

enum {
    HEAD_READ_BYTES = 4096, /* with a head; what follows that may go by splice(2) */
    EMPTY_READS_MAX = 16,   /* of bytes that have none of the response in them; then others have their turn */
};

void mk__gw_download_begin(struct mk__gw_download *d, const struct mk_gateway_call *call, enum mk_response_to to)
{
    d->call = call;
    d->limits = &call->conf->limits;
    mk_response_parser_init(&d->parser, d->limits, to);
    d->kept_len = d->rest_len = 0;
    d->has_begun = d->has_excess = d->has_failed = d->has_ended = d->is_refused = false;
    mk_buf_init(&d->trailers, d->limits->chunked.trailer_bytes_max);
}

void mk__gw_download_release(struct mk__gw_download *d)
{
    mk_buf_release(&d->trailers);
}

static ssize_t read_conn(struct mk__gw_download *d, struct mk__gw_backend_conn *conn, char *to, size_t size)
{
    ssize_t n = mk__gw_backend_read(conn, to, size);
    d->has_begun |= n > 0;
    d->has_failed |= n < 0 && n != -EAGAIN;
    return n;
}

/*
 * Reads, and takes the response out of what the protocol has around it. Returns the number of bytes, 0 (the response or
 * the connection has ended) or -errno.
 */
static ssize_t receive_bytes(struct mk__gw_download *d, struct mk__gw_backend_conn *conn, char *to, size_t size)
{
    size_t len = 0;
    if (!d->call->protocol->unwrap)
        return read_conn(d, conn, to, size);
    for (unsigned i = 0; !len && !d->has_ended; i++) {
        if (i == EMPTY_READS_MAX)
            return mk__gw_backend_read_later(conn);
        ssize_t n = read_conn(d, conn, to, size);
        if (n <= 0)
            return n == 0 ? -EPIPE : n;
        len = (size_t)n;
        bool has_excess = false;
        int r = d->call->protocol->unwrap(d->call, to, &len, &has_excess);
        d->is_refused |= r == -EBUSY;
        d->has_excess |= has_excess;
        d->has_ended |= r > 0;
        if (r < 0)
            return r;
    }
    return (ssize_t)len;
}

/* ── heads ── */

/* Keeps the beginning of a head for the next call, with its fields. Returns -EAGAIN or -ENOMEM. */
static int keep_bytes(struct mk__gw_download *d, struct mk_arena *arena, const char *bytes, size_t len)
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

int mk__gw_download_move(struct mk__gw_download *to, struct mk__gw_download *from, const struct mk_gateway_call *call,
                         struct mk_arena *arena)
{
    *to = *from;
    to->call = call;
    to->kept = NULL;
    if (from->kept && keep_bytes(to, arena, from->kept, from->kept_len) != -EAGAIN)
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
static ssize_t fill_buffer(struct mk__gw_download *d, struct mk__gw_backend_conn *conn, char *buffer, size_t size)
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
    ssize_t n = receive_bytes(d, conn, buffer + len, size - len < HEAD_READ_BYTES ? size - len : HEAD_READ_BYTES);
    return n > 0 ? (ssize_t)len + n : n == 0 ? -EPIPE : n;
}

int mk__gw_download_head(struct mk__gw_download *d, struct mk__gw_backend_conn *conn, struct mk_arena *arena,
                         struct mk_field *fields, char *buffer, size_t size, struct mk_str *ret_head)
{
    const struct mk_gateway_protocol *protocol = d->call->protocol;
    if (!d->kept)
        d->fields = fields;
    if (d->parser.head_bytes)
        mk_response_parser_next(&d->parser);
    for (;;) {
        ssize_t n = fill_buffer(d, conn, buffer, size);
        if (n < 0)
            return (int)n;
        struct mk_str bytes = mk_str(buffer, (size_t)n);
        int r = protocol->parse_head ? protocol->parse_head(d->call, &d->parser, d->fields, bytes)
                                     : mk_response_parser_head(&d->parser, d->fields, bytes);
        if (r < 0)
            return r;
        if (r == 0) {
            d->kept_len = 0;
            d->rest = buffer + d->parser.head_bytes;
            d->rest_len = (size_t)n - d->parser.head_bytes;
            *ret_head = mk_str(buffer, d->parser.head_bytes);
            return 0;
        }
        if (d->has_ended)
            return -EPIPE; /* no more of it comes */
        r = keep_bytes(d, arena, buffer, (size_t)n);
        if (r != -EAGAIN)
            return r;
    }
}

/* ── the body ── */

/* Decodes bytes in place, of which the response may have no more. Returns the number of bytes of data, or -errno. */
static ssize_t decode_bytes(struct mk__gw_download *d, char *bytes, size_t len)
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
    int err = d->has_ended && !d->parser.is_done ? mk_response_parser_end(&d->parser) : 0;
    return err < 0 ? err : (ssize_t)n;
}

struct mk_str mk__gw_download_first(struct mk__gw_download *d, int *ret_err)
{
    d->parser.chunked.trailers = &d->trailers;
    ssize_t n = decode_bytes(d, d->rest, d->rest_len);
    *ret_err = n < 0 ? (int)n : 0;
    d->rest_len = 0;
    return mk_str(d->rest, n < 0 ? 0 : (size_t)n);
}

ssize_t mk__gw_download_body(struct mk__gw_download *d, struct mk__gw_backend_conn *conn, char *to, size_t size)
{
    ssize_t data = 0;
    while (data == 0 && !d->parser.is_done) {
        ssize_t n = receive_bytes(d, conn, to, size);
        if (n < 0)
            return n;
        if (n == 0)
            return mk_response_parser_end(&d->parser);
        data = decode_bytes(d, to, (size_t)n);
    }
    return data;
}

/* ── by splice(2) ── */

/* Empties the pipe first: what a backend has sent before it fails reaches the client. */
static int drain_pipe(struct mk__gw_pipe *pipe, int fd, size_t size, size_t *moved)
{
    while (pipe->bytes && *moved < size) {
        ssize_t n = mk__gw_pipe_drain(pipe, fd, size - *moved);
        if (n <= 0)
            return n == -EAGAIN ? -EBUSY : n == -EOPNOTSUPP ? -EOPNOTSUPP : -ECONNABORTED;
        *moved += (size_t)n;
    }
    return 0;
}

static ssize_t fill_pipe(struct mk__gw_download *d, struct mk__gw_backend_conn *conn, struct mk__gw_pipe *pipe)
{
    uint64_t left = mk_response_parser_skippable(&d->parser);
    ssize_t n = mk__gw_backend_splice(conn, pipe, left < MK__GW_PIPE_BYTES ? (size_t)left : MK__GW_PIPE_BYTES);
    d->has_failed |= n < 0 && n != -EAGAIN && n != -EOPNOTSUPP;
    if (n == 0)
        return mk_response_parser_end(&d->parser);
    if (n > 0)
        mk_response_parser_skip(&d->parser, (uint64_t)n);
    return n;
}

ssize_t mk__gw_download_splice(struct mk__gw_download *d, struct mk__gw_backend_conn *conn, struct mk__gw_pipe *pipe,
                               int fd, size_t size)
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

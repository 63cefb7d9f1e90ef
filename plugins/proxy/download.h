// SPDX-License-Identifier: Apache-2.0
/*
 * The way of a response from its backend: heads as a whole, then the body in the pieces that the caller has room for.
 */
#ifndef PROXY_DOWNLOAD_H
#define PROXY_DOWNLOAD_H

#include "backend.h"

#include <monkey/arena.h>

struct download {
    const struct mk_response_limits *limits;
    struct mk_response_parser parser;
    struct mk_field *fields; /* of the last head; in the arena, as `kept`, while that is not complete */
    char *kept;              /* the beginning of a head that is not complete */
    size_t kept_len;
    char *rest; /* bytes behind the head, in the buffer of the last read: valid until the callback returns */
    size_t rest_len;
    struct mk_buf trailers;
    bool has_begun;  /* a byte has come on this connection */
    bool has_excess; /* there were bytes behind the response */
    bool has_failed; /* the connection, by its transport's word */
};

/* Begins, also for a second connection. */
void download_begin(struct download *d, const struct mk_response_limits *limits, enum mk_response_to to);
void download_release(struct download *d);
/* Moves what was read to another owner, whose arena gets the beginning of a head. Returns 0, or -ENOMEM: nothing. */
int download_move(struct download *to, struct download *from, struct mk_arena *arena);

/*
 * Reads up to the end of the next head, into `buffer`, and its headers into `fields`, of which there are as many as the
 * limit says. Call it again behind a head of 1xx.
 * Returns 0 (d->parser and d->fields describe the head in `*ret_head`), -EAGAIN, -EPIPE (the connection has ended),
 * -EINVAL, -EMSGSIZE, -ENOMEM or another -errno of the connection.
 */
int download_head(struct download *d, struct backend_conn *conn, struct mk_arena *arena, struct mk_field *fields,
                  char *buffer, size_t size, struct mk_str *ret_head);

/*
 * Returns what of the body came with the head; decoded in place. Once, behind the last head. `*ret_err`: 0 or -errno of
 * what follows.
 */
struct mk_str download_first(struct download *d, int *ret_err);
/*
 * Reads what comes next of the body. Returns the number of bytes, 0 (it is complete), -EAGAIN, -EPIPE (it was cut) or
 * another -errno.
 */
ssize_t download_body(struct download *d, struct backend_conn *conn, char *to, size_t size);
/*
 * Moves what comes next of a body with a length through `pipe` to a socket, at most `size` bytes; without `conn` only
 * what is in the pipe. Returns the number of bytes, 0 (there are no more), -EAGAIN (of the backend), -EBUSY (the socket
 * takes no more now), -ECONNABORTED (the socket has failed), -EPIPE (the body was cut), -EOPNOTSUPP (the system does
 * not do that: the bytes can be read) or another -errno of `conn`.
 */
ssize_t download_splice(struct download *d, struct backend_conn *conn, struct pipe *pipe, int fd, size_t size);

/* Tells whether the response lets another request use the connection. */
static inline bool download_keeps_conn(const struct download *d)
{
    return d->parser.is_done && d->parser.keep_alive && !d->has_excess;
}

#endif

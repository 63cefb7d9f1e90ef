// SPDX-License-Identifier: Apache-2.0
/*
 * The way of a request to its backend: what the socket does not take at once is kept, and the caller pauses the client
 * meanwhile. So no more than a piece is in memory.
 */
#ifndef PROXY_UPLOAD_H
#define PROXY_UPLOAD_H

#include "pipes.h"

#include <monkey/transport.h>

struct upload {
    struct mk_str head;       /* valid in this turn of the loop, and not sent yet; `.p` NULL: none */
    struct mk_buf unsent;     /* what the connection has not taken */
    struct pipe *pipe;        /* NULL, or the same by splice(2) */
    struct mk_str last_chunk; /* of a chunked body, with trailers; `.p` NULL: without */
    bool is_held;             /* the transport holds bytes that it has taken */
    bool has_body, is_chunked;
    uint64_t sent_bytes; /* on all connections */
    bool is_sent;        /* the backend may have some of it */
    bool body_begun;     /* a piece of the body was taken: the request cannot be repeated */
    bool body_ended;     /* all of it was taken */
    bool is_refused;     /* the backend takes no more; it may have sent a response before */
};

/* Begins, also for a second connection, with a head that is sent with what follows or by upload_flush(). */
void upload_begin(struct upload *u, struct mk_str head, bool has_body, bool is_chunked);
void upload_release(struct upload *u);
/* Moves what waits to another owner. `from` has nothing any more. */
void upload_move(struct upload *to, struct upload *from);

/* Sends a piece of the body, framed, or keeps it. `end`: it is the last one. Returns 0 or -ENOMEM. */
int upload_piece(struct upload *u, struct mk_io *io, struct mk_str piece, bool end);
/*
 * Moves up to `size` bytes of the body from the socket `fd` by splice(2), where no bytes wait; it has a length. Returns
 * as mk_body_splice_fn, or -ENOMEM.
 */
ssize_t upload_splice(struct upload *u, struct pipes *pipes, struct mk_io *io, int fd, size_t size);
/* Sends what waits. Returns 0 or -ENOMEM. */
int upload_flush(struct upload *u, struct mk_io *io);

/* Tells whether bytes wait for the backend. */
static inline bool upload_is_blocked(const struct upload *u)
{
    return u->unsent.len > 0 || u->pipe || u->is_held;
}

/* Tells whether no more of the body is awaited. */
static inline bool upload_is_taken(const struct upload *u)
{
    return u->body_ended || !u->has_body || u->is_refused;
}

/* Tells whether the backend has got all of it. */
static inline bool upload_is_done(const struct upload *u)
{
    return u->is_sent && !u->is_refused && !upload_is_blocked(u) && upload_is_taken(u);
}

#endif

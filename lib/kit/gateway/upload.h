// SPDX-License-Identifier: Apache-2.0
/*
 * The way of a request to its backend: what the socket does not take at once is kept, and the caller pauses the client
 * meanwhile. So no more than a piece is in memory.
 */
#ifndef MK_GATEWAY_UPLOAD_H
#define MK_GATEWAY_UPLOAD_H

#include "pipes.h"

#include <monkey/kit/gateway.h>

struct mk__gw_upload {
    struct mk_str head;                     /* valid in this turn of the loop, and not sent yet; `.p` NULL: none */
    struct mk_buf unsent;                   /* what the connection has not taken */
    struct mk__gw_pipe *pipe;               /* NULL, or the same by splice(2) */
    const struct mk_gateway_frames *frames; /* NULL: pieces are sent as they are */
    struct mk_str body_end;                 /* in place of that of the frames; `.p` NULL: that */
    bool is_held;                           /* the transport holds bytes that it has taken */
    bool has_body;
    uint64_t sent_bytes; /* on all connections */
    bool is_sent;        /* the backend may have some of it */
    bool body_begun;     /* a piece of the body was taken: the request cannot be repeated */
    bool body_ended;     /* all of it was taken */
    bool is_refused;     /* the backend takes no more; it may have sent a response before */
};

/* Begins, also for a second connection, with a head that is sent with what follows or by mk__gw_upload_flush(). */
void mk__gw_upload_begin(struct mk__gw_upload *u, struct mk_str head, bool has_body,
                         const struct mk_gateway_frames *frames);
void mk__gw_upload_release(struct mk__gw_upload *u);
/* Moves what waits to another owner. `from` has nothing any more. */
void mk__gw_upload_move(struct mk__gw_upload *to, struct mk__gw_upload *from);

/* Sends a piece of the body, framed, or keeps it. `end`: it is the last one. Returns 0 or -ENOMEM. */
int mk__gw_upload_piece(struct mk__gw_upload *u, struct mk_io *io, struct mk_str piece, bool end);
/*
 * Moves up to `size` bytes of the body from the socket `fd` by splice(2), where no bytes wait; it has a length. Returns
 * as mk_body_splice_fn, or -ENOMEM.
 */
ssize_t mk__gw_upload_splice(struct mk__gw_upload *u, struct mk__gw_pipes *pipes, struct mk_io *io, int fd,
                             size_t size);
/* Sends what waits. Returns 0 or -ENOMEM. */
int mk__gw_upload_flush(struct mk__gw_upload *u, struct mk_io *io);

/* Tells whether bytes wait for the backend. */
static inline bool mk__gw_upload_is_blocked(const struct mk__gw_upload *u)
{
    return u->unsent.len > 0 || u->pipe || u->is_held;
}

/* Tells whether no more of the body is awaited. */
static inline bool mk__gw_upload_is_taken(const struct mk__gw_upload *u)
{
    return u->body_ended || !u->has_body || u->is_refused;
}

/* Tells whether the backend has got all of it. */
static inline bool mk__gw_upload_is_done(const struct mk__gw_upload *u)
{
    return u->is_sent && !u->is_refused && !mk__gw_upload_is_blocked(u) && mk__gw_upload_is_taken(u);
}

#endif

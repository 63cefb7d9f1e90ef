// SPDX-License-Identifier: Apache-2.0
/*
 * The body of a request that is received as a whole, in a spool, before the backend is asked: a client that is slow
 * holds no backend, and the request can be repeated.
 *
 *     received_begin ─► (pieces) ─► `ready` ─► received_send ... ─► received_rewind, for a retry
 */
#ifndef PROXY_RECEIVED_H
#define PROXY_RECEIVED_H

#include "spooled.h"
#include "upload.h"

struct received;

/*
 * Is called in the loop, possibly within received_begin(), which returns 0 then: once when the body is complete (`err`
 * 0), or could not be kept: -EFBIG (it is too long) or another -errno. Then with 0 when received_send() can continue.
 */
typedef void (*received_fn)(struct received *r, int err);

/* Zeros: not used. */
struct received {
    struct mk_request *req;
    struct spooled *spooled; /* NULL: not used, or released */
    uint64_t bytes_max;
    bool is_complete;
    bool has_failed;
    received_fn ready;
};

/*
 * Begins to receive a body of at most `bytes_max` bytes. Returns 0, -EFBIG (it says that it is longer), or -EDQUOT or
 * -ENOMEM of mk_spool_open(); `ready` is not called then.
 */
int received_begin(struct received *r, struct mk_request *req, uint64_t bytes_max, received_fn ready);
/* Frees what was received. Does nothing if it is not used. */
void received_release(struct received *r);

/* Returns the length of a body that is complete. */
uint64_t received_length(const struct received *r);
/*
 * Sends what the connection takes, behind a head that upload_begin() was given. Returns 0 (`ready` follows if that is
 * not all, or the connection can take bytes again), -EDQUOT (it cannot be read) or -ENOMEM.
 */
int received_send(struct received *r, struct upload *u, struct mk_io *io);
/* Begins again with the first byte. Returns 0 or -errno. */
int received_rewind(struct received *r);
/* Moves a complete body to another owner. `from` is not used any more. */
void received_move(struct received *to, struct received *from, received_fn ready);

#endif

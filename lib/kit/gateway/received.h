// SPDX-License-Identifier: Apache-2.0
/*
 * The body of a request that is received as a whole, in a spool, before the backend is asked: a client that is slow
 * holds no backend, and the request can be repeated.
 *
 *     mk__gw_received_begin ─► (pieces) ─► `ready` ─► mk__gw_received_send ... ─► mk__gw_received_rewind, for a retry
 */
#ifndef MK_GATEWAY_RECEIVED_H
#define MK_GATEWAY_RECEIVED_H

#include "spooled.h"
#include "upload.h"

struct mk__gw_received;

/*
 * Is called in the loop, possibly within mk__gw_received_begin(), which returns 0 then: once when the body is complete
 * (`err` 0), or could not be kept: -EFBIG (it is too long) or another -errno. Then with 0 when mk__gw_received_send()
 * can continue.
 */
typedef void (*mk__gw_received_fn)(struct mk__gw_received *r, int err);

/* Zeros: not used. */
struct mk__gw_received {
    struct mk_request *req;
    struct mk__gw_spooled *spooled; /* NULL: not used, or released */
    uint64_t bytes_max;
    bool is_complete;
    bool has_failed;
    mk__gw_received_fn ready;
};

/*
 * Begins to receive a body of at most `bytes_max` bytes. Returns 0, -EFBIG (it says that it is longer), or -EDQUOT or
 * -ENOMEM of mk_spool_open(); `ready` is not called then.
 */
int mk__gw_received_begin(struct mk__gw_received *r, struct mk_request *req, uint64_t bytes_max,
                          mk__gw_received_fn ready);
/* Frees what was received. Does nothing if it is not used. */
void mk__gw_received_release(struct mk__gw_received *r);

/* Returns the length of a body that is complete. */
uint64_t mk__gw_received_length(const struct mk__gw_received *r);
/*
 * Sends what the connection takes, after a head that mk__gw_upload_begin() was given. Returns 0 (`ready` follows if
 * that is not all, or the connection can take bytes again), -EDQUOT (it cannot be read) or -ENOMEM.
 */
int mk__gw_received_send(struct mk__gw_received *r, struct mk__gw_upload *u, struct mk_io *io);
/* Begins again with the first byte. Returns 0 or -errno. */
int mk__gw_received_rewind(struct mk__gw_received *r);
/* Moves a complete body to another owner. `from` is not used any more. */
void mk__gw_received_move(struct mk__gw_received *to, struct mk__gw_received *from, mk__gw_received_fn ready);

#endif

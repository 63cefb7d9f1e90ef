// SPDX-License-Identifier: Apache-2.0
/*
 * Memory that HTTP/2 takes from its worker's account: buffers for heads that are being received, bytes that wait, and
 * what the connections of a worker share.
 */
#ifndef MK_HTTP_H2_ALLOC_H
#define MK_HTTP_H2_ALLOC_H

#include "http/h2/h2.h"
#include "http/h2/request_head.h"

/*
 * A head that is being received. The worker has one buffer for all connections, and lends it to the one whose head is
 * not complete; if several need one, further ones are allocated.
 */
struct mk__h2_head_buf {
    struct mk__h2_request_head head;
    uint32_t size, fields_max; /* of the head's bytes; of its fields */
    struct mk_field fields[];  /* the bytes follow them */
};

/* Creates or frees what mk__h2_shared_slot() holds. Returns NULL without memory. */
struct mk__h2_shared *mk__h2_alloc_shared(struct mk__context *http);
void mk__h2_alloc_free_shared(struct mk__context *http);

/* Returns an empty head buffer; NULL without memory. */
struct mk__h2_head_buf *mk__h2_alloc_get_head_buf(struct mk__h2 *h2);
/* Returns the connection's head buffer, if it has one, to the worker: its head is complete or was given up. */
void mk__h2_alloc_put_head_buf(struct mk__h2 *h2);

/* Makes bytes that wait longer. Returns the place of the new ones; NULL without memory. */
char *mk__h2_alloc_extend(const struct mk__h2 *h2, struct mk__h2_bytes *b, size_t len);
/* Frees bytes that wait no longer. */
void mk__h2_alloc_release(const struct mk__h2 *h2, struct mk__h2_bytes *b);

#endif

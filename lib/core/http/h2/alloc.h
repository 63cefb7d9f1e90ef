// SPDX-License-Identifier: Apache-2.0
/*
 * Memory that HTTP/2 takes from its worker's account: an allocator for nghttp2, which frees without telling the size,
 * and buffers for heads that are being received.
 */
#ifndef MK_HTTP_H2_ALLOC_H
#define MK_HTTP_H2_ALLOC_H

#include "http/h2/h2.h"
#include "http/h2/request_head.h"

/*
 * Like malloc(3), calloc(3), realloc(3) and free(3); `account` is the worker's. They return NULL if the budget is
 * exhausted.
 */
void *mk__h2_alloc(size_t size, void *account);
void *mk__h2_alloc_zeroed(size_t n, size_t size, void *account);
void *mk__h2_alloc_resize(void *p, size_t size, void *account);
void mk__h2_alloc_free(void *p, void *account);

/*
 * A head that is being received. The worker has one buffer for all connections, and lends it to the one whose head is
 * not complete; if several need one, further ones are allocated.
 */
struct mk__h2_head_buf {
    struct mk__h2_request_head head;
    uint32_t size;
    char data[];
};

/* Creates or frees what mk__h2_shared_slot() holds, without the members of nghttp2. Returns NULL without memory. */
struct mk__h2_shared *mk__h2_alloc_shared(struct mk__context *http);
void mk__h2_alloc_free_shared(struct mk__context *http);

/* Returns an empty head buffer; NULL without memory. */
struct mk__h2_head_buf *mk__h2_alloc_get_head_buf(struct mk__h2 *h2);
/* Returns the connection's head buffer, if it has one, to the worker: its head is complete or was given up. */
void mk__h2_alloc_put_head_buf(struct mk__h2 *h2);

#endif

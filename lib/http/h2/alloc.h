// SPDX-License-Identifier: Apache-2.0
/*
 * What HTTP/2 takes from its worker's account: a heap for nghttp2, which frees without telling how much, and room for
 * the heads that are on their way.
 */
#ifndef MK_HTTP_H2_ALLOC_H
#define MK_HTTP_H2_ALLOC_H

#include "http/h2/h2.h"
#include "http/h2/request_head.h"

/* As malloc(3) and so on; `account` is the worker's. */
void *mk__h2_alloc(size_t size, void *account);
void *mk__h2_alloc_zeroed(size_t n, size_t size, void *account);
void *mk__h2_alloc_resize(void *p, size_t size, void *account);
void mk__h2_alloc_free(void *p, void *account);

/* A head on its way; the worker has one for all connections, and lends it to the one whose head is not whole. */
struct mk__h2_head_buf {
    struct mk__h2_request_head head;
    uint32_t size;
    char data[];
};

/* What the worker's connections share, http->second_shared, without what is nghttp2's; NULL: no memory. */
struct mk__h2_shared *mk__h2_alloc_shared(struct mk__context *http);
void mk__h2_alloc_free_shared(struct mk__context *http);

/* An empty one; NULL: no memory. */
struct mk__h2_head_buf *mk__h2_alloc_get_head_buf(struct mk__h2 *h2);
/* The connection's own, if it has one: the head is read, or will not be. */
void mk__h2_alloc_put_head_buf(struct mk__h2 *h2);

#endif

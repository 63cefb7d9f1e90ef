// SPDX-License-Identifier: Apache-2.0
/*
 * The allocator, head buffers and shared data of http/h2/alloc.h.
 */
#include "http/h2/alloc.h"

#include <assert.h>

/* ── the allocator ── */

struct alloc_block {
    size_t bytes;
    _Alignas(16) char data[];
};

void *mk__h2_alloc(size_t size, void *account)
{
    struct alloc_block *b = size < PTRDIFF_MAX - sizeof(*b) ? mk_account_alloc(account, sizeof(*b) + size) : NULL;
    if (!b)
        return NULL;
    b->bytes = sizeof(*b) + size;
    return b->data;
}

void mk__h2_alloc_free(void *p, void *account)
{
    struct alloc_block *b = p ? MK_CONTAINER_OF((char(*)[])p, struct alloc_block, data) : NULL;
    if (b)
        mk_account_free(account, b, b->bytes);
}

void *mk__h2_alloc_zeroed(size_t n, size_t size, void *account)
{
    void *p = size && n > PTRDIFF_MAX / size ? NULL : mk__h2_alloc(n * size, account);
    return p ? memset(p, 0, n * size) : NULL;
}

void *mk__h2_alloc_resize(void *p, size_t size, void *account)
{
    void *to = mk__h2_alloc(size, account);
    if (to && p) {
        size_t before = MK_CONTAINER_OF((char(*)[])p, struct alloc_block, data)->bytes - sizeof(struct alloc_block);
        memcpy(to, p, before < size ? before : size);
        mk__h2_alloc_free(p, account);
    }
    return to;
}

/* ── head buffers ── */

struct mk__h2_head_buf *mk__h2_alloc_get_head_buf(struct mk__h2 *h2)
{
    struct mk__context *http = mk__h2_http(h2);
    struct mk__h2_shared *shared = mk__h2_shared_of(h2);
    struct mk__h2_head_buf *head_buf = shared->head_buf;
    assert(!h2->head_buf);
    uint32_t size = http->settings->head.head_bytes_max + MK__READ_BYTES;
    shared->head_buf = NULL;
    if (head_buf && head_buf->size != size) {
        mk_account_free(http->account, head_buf, sizeof(*head_buf) + head_buf->size);
        head_buf = NULL;
    }
    if (!head_buf)
        head_buf = mk_account_alloc(http->account, sizeof(*head_buf) + size);
    if (!head_buf)
        return NULL;
    head_buf->size = size;
    mk__h2_request_head_init(&head_buf->head, head_buf->data, size);
    return head_buf;
}

void mk__h2_alloc_put_head_buf(struct mk__h2 *h2)
{
    struct mk__h2_shared *shared = mk__h2_shared_of(h2);
    struct mk__h2_head_buf *head_buf = h2->head_buf;
    h2->head_buf = NULL;
    h2->head_stream = NULL;
    if (head_buf && shared->head_buf)
        mk_account_free(mk__h2_http(h2)->account, head_buf, sizeof(*head_buf) + head_buf->size);
    else if (head_buf)
        shared->head_buf = head_buf;
}

/* ── data that the connections of a worker share ── */

struct mk__h2_shared *mk__h2_alloc_shared(struct mk__context *http)
{
    struct mk__h2_shared *shared = mk_account_alloc(http->account, sizeof(*shared));
    if (!shared)
        return NULL;
    *shared = (struct mk__h2_shared){
        .out = {.data = mk_account_alloc(http->account, MK__H2_OUT_BYTES), .size = MK__H2_OUT_BYTES},
    };
    *mk__h2_shared_slot(http) = shared;
    if (shared->out.data)
        return shared;
    mk__h2_alloc_free_shared(http);
    return NULL;
}

void mk__h2_alloc_free_shared(struct mk__context *http)
{
    struct mk__h2_shared *shared = *mk__h2_shared_slot(http);
    assert(shared);
    if (shared->out.data)
        mk_account_free(http->account, shared->out.data, MK__H2_OUT_BYTES);
    if (shared->head_buf)
        mk_account_free(http->account, shared->head_buf, sizeof(*shared->head_buf) + shared->head_buf->size);
    mk_account_free(http->account, shared, sizeof(*shared));
    *mk__h2_shared_slot(http) = NULL;
}

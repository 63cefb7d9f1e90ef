// SPDX-License-Identifier: Apache-2.0
/*
 * The buffers and shared data of http/h2/alloc.h.
 */
#include "http/h2/alloc.h"

#include "base/arena.h"

#include <assert.h>

/* ── head buffers ── */

static size_t head_buf_bytes(uint32_t size, uint32_t fields_max)
{
    return sizeof(struct mk__h2_head_buf) + fields_max * sizeof(struct mk_field) + size;
}

static void free_head_buf(struct mk__context *http, struct mk__h2_head_buf *head_buf)
{
    if (head_buf)
        mk_account_free(http->account, head_buf, head_buf_bytes(head_buf->size, head_buf->fields_max));
}

struct mk__h2_head_buf *mk__h2_alloc_get_head_buf(struct mk__h2 *h2)
{
    struct mk__context *http = mk__h2_http(h2);
    struct mk__h2_shared *shared = h2->shared;
    struct mk__h2_head_buf *head_buf = shared->head_buf;
    const struct mk__parse_limits *limits = &http->settings->head;
    assert(!h2->head_buf);
    uint32_t size =
        limits->head_bytes_max + limits->line_bytes_max; /* parts of the line are kept before it is stored */
    shared->head_buf = NULL;
    if (head_buf && (head_buf->size != size || head_buf->fields_max != limits->fields_max)) {
        free_head_buf(http, head_buf);
        head_buf = NULL;
    }
    if (!head_buf)
        head_buf = mk_account_alloc(http->account, head_buf_bytes(size, limits->fields_max));
    if (!head_buf)
        return NULL;
    head_buf->size = size;
    head_buf->fields_max = limits->fields_max;
    char *data = (char *)(head_buf->fields + limits->fields_max);
    mk__h2_request_head_init(&head_buf->head, data, size, head_buf->fields, limits);
    return head_buf;
}

void mk__h2_alloc_put_head_buf(struct mk__h2 *h2)
{
    struct mk__h2_shared *shared = h2->shared;
    struct mk__h2_head_buf *head_buf = h2->head_buf;
    h2->head_buf = NULL;
    h2->head_stream = NULL;
    if (shared->head_buf)
        free_head_buf(mk__h2_http(h2), head_buf);
    else if (head_buf)
        shared->head_buf = head_buf;
}

/* ── bytes that wait ── */

enum { BYTES_MIN = MK__ARENA_PIECE_BYTES };

char *mk__h2_alloc_extend(const struct mk__h2 *h2, struct mk__h2_bytes *b, size_t len)
{
    struct mk_account *account = mk__h2_http(h2)->account;
    if (len > b->size - b->len) {
        size_t size = b->size ? 2 * (size_t)b->size : BYTES_MIN;
        while (size < b->len + len)
            size *= 2;
        char *p = size <= UINT32_MAX ? mk__arena_alloc_piece(account, size) : NULL;
        if (!p)
            return NULL;
        if (b->len)
            memcpy(p, b->p, b->len);
        mk__arena_free_piece(account, b->p, b->size);
        *b = (struct mk__h2_bytes){p, b->len, (uint32_t)size};
    }
    b->len += (uint32_t)len;
    return b->p + b->len - len;
}

void mk__h2_alloc_release(const struct mk__h2 *h2, struct mk__h2_bytes *b)
{
    mk__arena_free_piece(mk__h2_http(h2)->account, b->p, b->size);
    *b = (struct mk__h2_bytes){.len = 0};
}

/* ── data that the connections of a worker share ── */

enum { STREAMS_PER_BLOCK = 12 }; /* about 4 KB */

struct mk__h2_shared *mk__h2_alloc_shared(struct mk__context *http)
{
    struct mk__h2_shared *shared = mk_account_alloc(http->account, sizeof(*shared));
    if (!shared)
        return NULL;
    *shared = (struct mk__h2_shared){
        .out = {.data = mk_account_alloc(http->account, MK__H2_OUT_BYTES), .size = MK__H2_OUT_BYTES},
    };
    mk__pool_init(&shared->streams, http->account, sizeof(struct mk__h2_stream), STREAMS_PER_BLOCK);
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
    free_head_buf(http, shared->head_buf);
    mk__pool_release(&shared->streams);
    mk_account_free(http->account, shared, sizeof(*shared));
    *mk__h2_shared_slot(http) = NULL;
}

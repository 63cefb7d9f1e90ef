// SPDX-License-Identifier: Apache-2.0
/*
 * The heap and the rooms of http/h2_memory.h.
 */
#include "http/h2_memory.h"

/* ── a heap ── */

struct block {
    size_t bytes;
    _Alignas(16) char data[];
};

void *mk__h2_memory_take(size_t size, void *account)
{
    struct block *b = size < PTRDIFF_MAX - sizeof(*b) ? mk_account_alloc(account, sizeof(*b) + size) : NULL;
    if (!b)
        return NULL;
    b->bytes = sizeof(*b) + size;
    return b->data;
}

void mk__h2_memory_give(void *p, void *account)
{
    struct block *b = p ? MK_OWNER((char(*)[])p, struct block, data) : NULL;
    if (b)
        mk_account_free(account, b, b->bytes);
}

void *mk__h2_memory_take_zeroed(size_t n, size_t size, void *account)
{
    void *p = size && n > PTRDIFF_MAX / size ? NULL : mk__h2_memory_take(n * size, account);
    return p ? memset(p, 0, n * size) : NULL;
}

void *mk__h2_memory_retake(void *p, size_t size, void *account)
{
    void *to = mk__h2_memory_take(size, account);
    if (to && p) {
        size_t before = MK_OWNER((char(*)[])p, struct block, data)->bytes - sizeof(struct block);
        memcpy(to, p, before < size ? before : size);
        mk__h2_memory_give(p, account);
    }
    return to;
}

/* ── rooms for heads ── */

struct mk__h2_room *mk__h2_memory_borrow_room(struct mk__h2 *h2)
{
    struct mk__context *http = mk__h2_http(h2);
    struct mk__h2_shared *shared = mk__h2_shared_of(h2);
    struct mk__h2_room *room = shared->room;
    uint32_t size = http->settings->head.head_bytes_max + MK__READ_BYTES;
    shared->room = NULL;
    if (room && room->size != size) {
        mk_account_free(http->account, room, sizeof(*room) + room->size);
        room = NULL;
    }
    if (!room)
        room = mk_account_alloc(http->account, sizeof(*room) + size);
    if (!room)
        return NULL;
    room->size = size;
    mk__h2_head_init(&room->head, room->data, size);
    return room;
}

void mk__h2_memory_return_room(struct mk__h2 *h2)
{
    struct mk__h2_shared *shared = mk__h2_shared_of(h2);
    struct mk__h2_room *room = h2->room;
    h2->room = NULL;
    h2->head_of = NULL;
    if (room && shared->room)
        mk_account_free(mk__h2_http(h2)->account, room, sizeof(*room) + room->size);
    else if (room)
        shared->room = room;
}

/* ── what a worker's connections share ── */

struct mk__h2_shared *mk__h2_memory_share(struct mk__context *http)
{
    struct mk__h2_shared *shared = mk_account_alloc(http->account, sizeof(*shared));
    if (!shared)
        return NULL;
    *shared = (struct mk__h2_shared){
        .out = {.data = mk_account_alloc(http->account, MK__H2_OUT_BYTES), .size = MK__H2_OUT_BYTES},
    };
    http->h2_shared = shared;
    if (shared->out.data)
        return shared;
    mk__h2_memory_unshare(http);
    return NULL;
}

void mk__h2_memory_unshare(struct mk__context *http)
{
    struct mk__h2_shared *shared = http->h2_shared;
    if (shared->out.data)
        mk_account_free(http->account, shared->out.data, MK__H2_OUT_BYTES);
    if (shared->room)
        mk_account_free(http->account, shared->room, sizeof(*shared->room) + shared->room->size);
    mk_account_free(http->account, shared, sizeof(*shared));
    http->h2_shared = NULL;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Arenas and accounts. No other file of the library calls malloc() and free().
 */
#include <monkey/base/arena.h>

#include "base/arena.h"
#include "base/asan.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

enum { ALIGN = 16, CHUNK_BYTES_MIN = MK__ARENA_PIECE_BYTES, CHUNK_BYTES_MAX = 16384 };

struct mk_arena_chunk {
    struct mk_arena_chunk *next;
    size_t size;
};

struct mk_arena_clean {
    struct mk_arena_clean *next;
    void (*fn)(void *ctx);
    void *ctx;
};

static_assert(sizeof(struct mk_arena_chunk) % ALIGN == 0, "the bytes of a chunk start aligned");

_Atomic long mk__alloc_countdown = -1;

void *mk_account_alloc(struct mk_account *account, size_t size)
{
    if (MK_HAS_COUNTDOWN && MK_UNLIKELY(mk__alloc_countdown >= 0) && mk__alloc_countdown-- == 0)
        return NULL;
    if (account) {
        size_t max = account->bytes_max;
        if (max && (size > max || account->bytes > max - size))
            return NULL;
        account->bytes += size;
    }
    void *p = malloc(size);
    if (!p && account)
        account->bytes -= size;
    return p;
}

void mk_account_free(struct mk_account *account, void *p, size_t size)
{
    assert(!p || !account || size <= account->bytes);
    if (p && account)
        account->bytes -= size;
    free(p);
}

/* ── pieces of one size are kept for the next ones, so that a busy worker does not call malloc ── */

enum { SPARES_MAX = 128 }; /* an HTTP/2 connection may have 100 exchanges in a turn */

void *mk__arena_alloc_piece(struct mk_account *account, size_t size)
{
    if (size != MK__ARENA_PIECE_BYTES || !account || !account->spare)
        return mk_account_alloc(account, size);
    struct mk_arena_chunk *spare = account->spare;
    account->spare = spare->next;
    account->spares--;
    return spare;
}

void mk__arena_free_piece(struct mk_account *account, void *p, size_t size)
{
    if (MK__POOL_IS_MALLOC || size != MK__ARENA_PIECE_BYTES || !p || !account || account->spares == SPARES_MAX) {
        mk_account_free(account, p, size);
        return;
    }
    struct mk_arena_chunk *spare = p;
    spare->next = account->spare;
    account->spare = spare;
    account->spares++;
}

void mk_account_trim(struct mk_account *account)
{
    while (account->spare) {
        struct mk_arena_chunk *chunk = account->spare;
        account->spare = chunk->next;
        mk_account_free(account, chunk, MK__ARENA_PIECE_BYTES);
    }
    account->spares = 0;
}

/* ── arenas ── */

void mk_arena_init(struct mk_arena *a, struct mk_account *account, size_t bytes_max, void *storage, size_t size)
{
    assert((storage || !size) && (uintptr_t)storage % ALIGN == 0);
    *a = (struct mk_arena){.at = storage, .end = storage, .account = account, .bytes_max = bytes_max};
    if (size)
        a->end += size & ~(size_t)(ALIGN - 1);
}

MK_HOT void mk_arena_release(struct mk_arena *a)
{
    for (struct mk_arena_clean *c; (c = a->cleans);) {
        a->cleans = c->next; /* a clean-up may defer another clean-up */
        c->fn(c->ctx);
    }
    for (struct mk_arena_chunk *c = a->chunks, *next; c; c = next) {
        next = c->next;
        mk__asan_unpoison(c + 1, c->size - sizeof(*c));
        mk__arena_free_piece(a->account, c, c->size);
    }
    *a = (struct mk_arena){.account = a->account, .bytes_max = a->bytes_max};
}

/* Adds a chunk of `size` bytes, which the limit allows. Returns 0 or -ENOMEM. */
static int open_chunk(struct mk_arena *a, size_t size)
{
    struct mk_arena_chunk *chunk = mk__arena_alloc_piece(a->account, size);
    if (!chunk)
        return -ENOMEM;
    *chunk = (struct mk_arena_chunk){.next = a->chunks, .size = size};
    a->chunks = chunk;
    a->bytes += size;
    a->at = (char *)(chunk + 1);
    a->end = (char *)chunk + size;
    mk__asan_poison(a->at, (size_t)(a->end - a->at));
    return 0;
}

static int add_chunk(struct mk_arena *a, size_t need)
{
    assert(a->bytes <= a->bytes_max);
    size_t size = a->bytes < CHUNK_BYTES_MIN ? CHUNK_BYTES_MIN : a->bytes, left = a->bytes_max - a->bytes;
    if (left < sizeof(struct mk_arena_chunk) || need > left - sizeof(struct mk_arena_chunk))
        return -ENOMEM;
    if (size > CHUNK_BYTES_MAX)
        size = CHUNK_BYTES_MAX;
    if (size < need + sizeof(struct mk_arena_chunk))
        size = need + sizeof(struct mk_arena_chunk);
    if (size > left)
        size = left & ~(size_t)(ALIGN - 1);
    return open_chunk(a, size);
}

void mk__arena_reserve(struct mk_arena *a, size_t size)
{
    size_t left = a->bytes_max - a->bytes;
    if (size > (size_t)(a->end - a->at) && left > sizeof(struct mk_arena_chunk) + ALIGN &&
        size <= left - sizeof(struct mk_arena_chunk) - ALIGN)
        open_chunk(a, sizeof(struct mk_arena_chunk) + ((size + ALIGN - 1) & ~(size_t)(ALIGN - 1)));
}

/* Allocates in a chunk that is added. Apart, because most calls need none. */
static __attribute__((noinline)) void *alloc_in_new_chunk(struct mk_arena *a, size_t size, size_t need)
{
    return need >= size && add_chunk(a, need) == 0 ? mk_arena_alloc(a, size) : NULL;
}

void *mk_arena_alloc(struct mk_arena *a, size_t size)
{
    assert(a->at <= a->end);
    size_t need = size ? (size + ALIGN - 1) & ~(size_t)(ALIGN - 1) : ALIGN;
    if (MK_UNLIKELY(need > (size_t)(a->end - a->at) || need < size))
        return alloc_in_new_chunk(a, size, need);
    void *p = a->at;
    a->at += need;
    mk__asan_unpoison(p, size);
    return p;
}

void *mk__arena_alloc_exact(struct mk_arena *a, size_t size)
{
    size_t need = size ? (size + ALIGN - 1) & ~(size_t)(ALIGN - 1) : ALIGN,
           bytes = sizeof(struct mk_arena_chunk) + need;
    if (need >= size && need <= (size_t)(a->end - a->at))
        return mk_arena_alloc(a, size);
    struct mk_arena_chunk *chunk = NULL;
    if (need >= size && bytes > need && bytes <= a->bytes_max - a->bytes)
        chunk = mk__arena_alloc_piece(a->account, bytes);
    if (!chunk)
        return NULL;
    *chunk = (struct mk_arena_chunk){.next = a->chunks, .size = bytes};
    a->chunks = chunk;
    a->bytes += bytes;
    mk__asan_unpoison(chunk + 1, need);
    return chunk + 1;
}

void *mk_arena_zalloc(struct mk_arena *a, size_t size)
{
    void *p = mk_arena_alloc(a, size);
    return p ? memset(p, 0, size) : NULL;
}

struct mk_str mk_arena_dup(struct mk_arena *a, struct mk_str s)
{
    assert(s.p || !s.len);
    char *p = mk_arena_alloc(a, s.len + 1);
    if (!p)
        return MK_STR_NONE;
    if (s.len)
        memcpy(p, s.p, s.len);
    p[s.len] = '\0';
    return mk_str(p, s.len);
}

void *mk_arena_grow(struct mk_arena *a, void *items, uint32_t n, size_t item_bytes)
{
    assert((items || !n) && item_bytes);
    if (n && (n & (n - 1)))
        return items; /* an array of n items has room up to the next power of two */
    void *more = mk_arena_alloc(a, (n ? 2 * (size_t)n : 1) * item_bytes);
    return more && n ? memcpy(more, items, n * item_bytes) : more;
}

int mk_arena_defer(struct mk_arena *a, void (*fn)(void *ctx), void *ctx)
{
    assert(fn);
    struct mk_arena_clean *c = mk_arena_alloc(a, sizeof(*c));
    if (!c)
        return -ENOMEM;
    *c = (struct mk_arena_clean){.next = a->cleans, .fn = fn, .ctx = ctx};
    a->cleans = c;
    return 0;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Memory that dies together: bump allocation from chunks, one release for all, deferred clean-ups run in
 * reverse order. An arena belongs to one thread at a time.
 *
 *     first (caller's storage, may be empty) ─► chunk ─► chunk (each at least as large as asked)
 *
 * An arena has a limit, and draws on an account (NULL = none). Under AddressSanitizer what is not handed
 * out of a chunk is poisoned.
 */
#ifndef MONKEY_ARENA_H
#define MONKEY_ARENA_H

#include <stddef.h>
#include <stdint.h>

#include "status.h"
#include "str.h"

struct mk_arena_chunk;

/* What one worker (or one process) has taken from the heap, and how much it may take. */
struct mk_account {
    size_t bytes;                 /* in use */
    size_t bytes_max;             /* the budget, 0 = none */
    struct mk_arena_chunk *spare; /* a few chunks for the next arenas */
    unsigned spares;
};

struct mk_arena_clean;

struct mk_arena {
    char *at, *end;
    struct mk_arena_chunk *chunks;
    struct mk_arena_clean *cleans;
    struct mk_account *account;
    size_t bytes, bytes_max; /* of the chunks */
};

/* `storage` (aligned to 16, may be NULL with size 0) is used first and stays the caller's. */
MK_API void mk_arena_init(struct mk_arena *a, struct mk_account *account, size_t bytes_max, void *storage, size_t size);

/* Runs the clean-ups, frees the chunks. The arena must be initialised again before its next use. */
MK_API void mk_arena_release(struct mk_arena *a);

/* `size` bytes aligned to 16, not zeroed; NULL when the limit, the account or the heap is exhausted. */
MK_API void *mk_arena_alloc(struct mk_arena *a, size_t size);
MK_API void *mk_arena_zalloc(struct mk_arena *a, size_t size);

/* A copy of `s` with a NUL behind it that does not count; `.p` is NULL on failure. */
MK_API struct mk_str mk_arena_dup(struct mk_arena *a, struct mk_str s);

/*
 * Room for one more item in an array of `n`, which began empty and grew only so: in place, or twice as large elsewhere
 * in the arena. NULL on failure; the items stay where they were.
 */
MK_API void *mk_arena_grow(struct mk_arena *a, void *items, uint32_t n, size_t item_bytes);

/* Calls `fn(ctx)` when the arena is released; -ENOMEM when that cannot be promised (fn was not called). */
MK_API int mk_arena_defer(struct mk_arena *a, void (*fn)(void *ctx), void *ctx);

/*
 * The heap, seen through an account: NULL over the budget. What was taken with an account and a size
 * must be given back with the same ones. Unit tests make the n-th of these calls fail.
 */
MK_API void *mk_account_alloc(struct mk_account *account, size_t size);
MK_API void mk_account_free(struct mk_account *account, void *p, size_t size);
/* Gives back what the account keeps for arenas to come. */
MK_API void mk_account_trim(struct mk_account *account);

#endif

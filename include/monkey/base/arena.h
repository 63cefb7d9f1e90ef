// SPDX-License-Identifier: Apache-2.0
/*
 * Arenas: bump allocation from chunks, which are released all at once. Deferred clean-ups then run in reverse order. An
 * arena belongs to one thread at a time.
 *
 *     first (caller's storage, may be empty) ─► chunk ─► chunk (each at least as large as the allocation)
 *
 * An arena has a limit, and takes its chunks from an account (NULL: none). With AddressSanitizer, bytes of a chunk that
 * are not allocated are poisoned.
 */
#ifndef MONKEY_ARENA_H
#define MONKEY_ARENA_H

#include <stddef.h>
#include <stdint.h>

#include "../status.h"
#include "str.h"

MK_C_BEGIN

struct mk_arena_chunk;

/* What one worker (or one process) has allocated from the heap, and its budget. For one thread. */
struct mk_account {
    size_t bytes;                 /* bytes allocated now */
    size_t bytes_max;             /* the budget; 0: no limit */
    struct mk_arena_chunk *spare; /* free chunks of arenas and other pieces, for the next ones */
    unsigned spares;
};

struct mk_arena_clean;

struct mk_arena {
    char *at, *end;
    struct mk_arena_chunk *chunks;
    struct mk_arena_clean *cleans;
    struct mk_account *account;
    size_t bytes, bytes_max; /* of all chunks */
};

/*
 * Initializes an empty arena of at most `bytes_max` bytes in chunks. `storage` (aligned to 16 bytes; may be NULL with
 * `size` 0) is used first and stays the caller's.
 */
MK_API void mk_arena_init(struct mk_arena *a, struct mk_account *account, size_t bytes_max, void *storage, size_t size);

/* Runs the clean-ups and frees the chunks. Initialize the arena again before its next use. */
MK_API void mk_arena_release(struct mk_arena *a);

/* Returns `size` bytes aligned to 16 bytes, not zeroed; NULL when the limit, the account or the heap is exhausted. */
MK_API void *mk_arena_alloc(struct mk_arena *a, size_t size);
/* Returns `size` bytes as mk_arena_alloc(), but zeroed; NULL when the limit, the account or the heap is exhausted. */
MK_API void *mk_arena_zalloc(struct mk_arena *a, size_t size);

/* Returns a copy of `s`, followed by a NUL that does not count; `.p` is NULL on failure. */
MK_API struct mk_str mk_arena_dup(struct mk_arena *a, struct mk_str s);

/*
 * Makes room for one more item in an array of `n` items, which began empty and was grown only by this function: in
 * place, or in a copy twice as large.
 * Returns the array, or NULL on failure; the items then stay where they are.
 */
MK_API void *mk_arena_grow(struct mk_arena *a, void *items, uint32_t n, size_t item_bytes);

/*
 * Calls `fn(ctx)` when the arena is released.
 * Returns 0, or -ENOMEM, after which `fn` is not called.
 */
MK_API int mk_arena_defer(struct mk_arena *a, void (*fn)(void *ctx), void *ctx);

/*
 * Allocates from the heap, within the budget of an account (NULL: no budget). mk_account_free() needs the same account
 * and size. Unit tests make the n-th of these calls fail. Returns NULL when the budget or the heap is exhausted.
 */
MK_API void *mk_account_alloc(struct mk_account *account, size_t size);
/* Frees memory of mk_account_alloc(); `p` may be NULL. */
MK_API void mk_account_free(struct mk_account *account, void *p, size_t size);
/* Returns `size` bytes as mk_account_alloc(), but zeroed. */
static inline void *mk_account_zalloc(struct mk_account *account, size_t size)
{
    void *p = mk_account_alloc(account, size);
    return p ? memset(p, 0, size) : NULL;
}
/*
 * Moves memory of mk_account_alloc() (NULL: none, of 0 bytes) to more bytes, and frees it. Returns NULL without memory;
 * then `p` is as it was.
 */
static inline void *mk_account_grow(struct mk_account *account, void *p, size_t old_size, size_t size)
{
    void *to = mk_account_alloc(account, size);
    if (to && old_size)
        memcpy(to, p, old_size);
    if (to)
        mk_account_free(account, p, old_size);
    return to;
}
/* Frees the pieces that the account keeps. */
MK_API void mk_account_trim(struct mk_account *account);

MK_C_END

#endif

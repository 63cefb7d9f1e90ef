// SPDX-License-Identifier: Apache-2.0
/*
 * Arenas within the library, and allocations that fail in unit tests.
 */
#ifndef MK_BASE_ARENA_H
#define MK_BASE_ARENA_H

#include <assert.h>
#include <monkey/base/arena.h>

/*
 * The number of allocations that succeed before one fails; -1: none fails. Each unit that allocates is tested with 0,
 * 1, 2 ... until it needs no more allocations than that. Builds without tests do not look at it.
 */
extern _Atomic long mk__alloc_countdown;

/*
 * The same as mk_account_alloc() and mk_account_free(), but some pieces of one size are kept for the next ones, and
 * stay on the account until mk_account_trim(): for arenas, and for what a busy worker needs as often.
 */
enum { MK__ARENA_PIECE_BYTES = 1024 };
void *mk__arena_alloc_piece(struct mk_account *account, size_t size);
void mk__arena_free_piece(struct mk_account *account, void *p, size_t size);

/*
 * Returns `size` bytes as mk_arena_alloc() does. Where they need a chunk, it has no room for more: for what is kept
 * long, and after which little follows.
 */
void *mk__arena_alloc_exact(struct mk_arena *a, size_t size);
/*
 * Makes room for allocations of `size` bytes in all, each rounded up to 16: where that needs a chunk, in one of just
 * that size, if there is memory. For an arena that lasts long.
 */
void mk__arena_reserve(struct mk_arena *a, size_t size);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * Lets unit tests make the n-th allocation fail.
 */
#ifndef MK_BASE_ARENA_H
#define MK_BASE_ARENA_H

#include <assert.h>
#include <monkey/arena.h>

/*
 * The number of allocations that succeed before one fails; -1: none fails. Each unit that allocates is tested with 0,
 * 1, 2 ... until it needs no more allocations than that.
 */
extern _Atomic long mk__alloc_countdown;

#endif

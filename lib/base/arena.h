// SPDX-License-Identifier: Apache-2.0
/*
 * A seam in the allocation, through which unit tests let the n-th one fail.
 */
#ifndef MK_BASE_ARENA_H
#define MK_BASE_ARENA_H

#include <assert.h>
#include <monkey/arena.h>

/*
 * For unit tests: after this many more allocations one fails (-1: none). Each unit that allocates is run
 * with 0, 1, 2 ... until a run needs fewer allocations than that.
 */
extern _Atomic long mk__alloc_countdown;

#endif

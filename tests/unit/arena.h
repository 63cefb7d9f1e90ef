// SPDX-License-Identifier: Apache-2.0
/*
 * An arena of a file's tests, as a fixture: TEST(name, mk_test_arena_open, mk_test_arena_close).
 */
#ifndef MK_UNIT_ARENA_H
#define MK_UNIT_ARENA_H

#include "testing.h"

static struct mk_arena arena;

static inline int mk_test_arena_open(void **state)
{
    (void)state;
    mk_arena_init(&arena, NULL, 1 << 20, NULL, 0);
    return 0;
}

static inline int mk_test_arena_close(void **state)
{
    (void)state;
    mk_arena_release(&arena);
    return 0;
}

#endif

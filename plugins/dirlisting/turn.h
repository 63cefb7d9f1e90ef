// SPDX-License-Identifier: Apache-2.0
/*
 * Bounds the time that a worker checks entries without doing anything else.
 */
#ifndef DIRLISTING_TURN_H
#define DIRLISTING_TURN_H

#include <monkey/loop.h>

#include <stdbool.h>

enum { TURN_ENTRIES_MAX = 128, TURN_US_MAX = 2000 };

/* What a turn of the worker may still check. */
struct turn {
    const struct mk_loop *loop;
    uint64_t end_us;
    unsigned entries; /* so far */
};

/* Begins the checks of a turn. */
struct turn turn_begin(const struct mk_loop *loop);

/*
 * Call it before each entry. Returns true for the first one; then until TURN_ENTRIES_MAX or TURN_US_MAX is reached.
 */
bool turn_allows_entry(struct turn *turn);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * Counts entries and looks at the clock (turn.h): what a check costs depends on the rules and on the path.
 */
#include "turn.h"

struct turn turn_begin(const struct mk_loop *loop)
{
    return (struct turn){.loop = loop, .end_us = mk_loop_now_us(loop) + TURN_US_MAX};
}

bool turn_allows_entry(struct turn *turn)
{
    unsigned n = turn->entries++;
    return n == 0 || (n < TURN_ENTRIES_MAX && mk_loop_now_us(turn->loop) < turn->end_us);
}

// SPDX-License-Identifier: Apache-2.0
/* The worker that the fair scheduler picks. */
#include "testing.h"

#include "server/worker/balancer.h"

TEST(the_least_loaded)
{
    static const struct {
        uint32_t loads[4];
        unsigned n, last, pick;
    } rows[] = {
        {{5}, 1, 0, 0},           {{3, 2, 1, 4}, 4, 0, 2}, {{3, 2, 1, 4}, 4, 2, 2},
        {{0, 2, 1, 4}, 4, 0, 0},  {{1, 1, 1, 1}, 4, 0, 1}, {{1, 1, 1, 1}, 4, 3, 0},
        {{1, 0, 1, 0}, 4, 1, 3},  {{1, 0, 1, 0}, 4, 3, 1}, {{UINT32_MAX, 0}, 2, 1, 1},
        {{7, 1u << 31}, 2, 0, 0},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_int_equal(mk__balancer_pick(rows[i].loads, rows[i].n, rows[i].last), rows[i].pick);
}

/* With any initial difference, new connections go to the worker with fewer. */
TEST(loads_level_out)
{
    uint32_t loads[4] = {90, 3, 40, 0};
    unsigned last = 0;
    for (int i = 0; i < 267; i++) {
        last = mk__balancer_pick(loads, 4, last);
        loads[last]++;
    }
    for (int i = 0; i < 4; i++)
        assert_int_equal(loads[i], 100);
}

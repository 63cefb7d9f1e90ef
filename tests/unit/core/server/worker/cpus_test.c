// SPDX-License-Identifier: Apache-2.0
/* Quotas as control groups write them, and this machine. */
#include "testing.h"

#include <sched.h>

#include "server/worker/cpus.h"

static const struct {
    const char *text;
    unsigned cpus;
} quotas[] = {
    {"max 100000\n", 0},
    {"100000 100000\n", 1},
    {"250000 100000\n", 3},
    {"50000 100000\n", 1},
    {"200000 100000", 2},
    {"-1 100000\n", 0},
    {"0 100000\n", 0},
    {"100000 0\n", 0},
    {"100000 -5\n", 0},
    {"100000\n", 0},
    {"", 0},
    {"x y\n", 0},
    {"1 100000\n", 1},
};

TEST(quotas)
{
    for (size_t i = 0; i < COUNT(quotas); i++)
        assert_int_equal(mk__cpus_from_quota(quotas[i].text), quotas[i].cpus);
}

TEST(affinity)
{
    cpu_set_t before, one;
    assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
    unsigned all = mk__cpus_count();
    assert_in_range(all, 1, (unsigned)CPU_COUNT(&before));
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && !CPU_COUNT(&one); i++)
        if (CPU_ISSET(i, &before))
            CPU_SET(i, &one);
    assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
    assert_int_equal(mk__cpus_count(), 1);
    assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
    assert_int_equal(mk__cpus_count(), all);
}

TEST(choosing_one)
{
    static const int cpus[] = {0, 3, 64, CPU_SETSIZE - 1};
    for (unsigned n = 0; n < 12; n++) {
        cpu_set_t set;
        CPU_ZERO(&set);
        for (int i = 0; i < 4; i++)
            CPU_SET(cpus[i], &set);
        mk__cpus_pick(&set, n);
        assert_int_equal(CPU_COUNT(&set), 1);
        assert_true(CPU_ISSET(cpus[n % 4], &set));
    }
}

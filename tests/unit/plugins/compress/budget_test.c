// SPDX-License-Identifier: Apache-2.0
/* The books of a worker: streams, memory and time, each up to its limit. */
#include "plugins/compress/budget.h"

#include "testing.h"

TEST(streams_and_memory)
{
    const struct budget_limits limits = {.streams = 3};
    struct mk_account account = {.bytes_max = 1000}, unlimited = {0};
    assert_false(budget_reserve(&limits, &account, 501));
    assert_true(budget_reserve(&limits, &account, 300));
    assert_false(budget_reserve(&limits, &account, 201));
    assert_true(budget_reserve(&limits, &account, 200));
    assert_false(budget_reserve(&limits, &account, 1));
    assert_true(budget_reserve(&limits, &unlimited, 1 << 30));
    assert_false(budget_reserve(&limits, &unlimited, 1));
    budget_release(1 << 30);
    budget_release(200);
    budget_release(300);
    assert_true(budget_reserve(&limits, &account, 500));
    budget_release(500);
}

/* Works until the thread's clock has moved on by so much. */
static void work(const struct budget_limits *limits, uint64_t ns)
{
    uint64_t since = budget_clock(limits);
    while (budget_clock(limits) - since < ns)
        ;
    budget_spend(limits, since);
}

TEST(time)
{
    const struct budget_limits limits = {.cpu_percent = 2}; /* 2 ms of 100 */
    assert_true(budget_has_time(&limits, 1000));
    work(&limits, 1000);
    assert_true(budget_has_time(&limits, 1099));
    work(&limits, 3000000);
    assert_false(budget_has_time(&limits, 1099));
    assert_int_equal(budget_wait_ms(1000), 100);
    assert_int_equal(budget_wait_ms(1099), 1);
    assert_true(budget_has_time(&limits, 10000)); /* what was owed is paid, and nothing is saved up */
    work(&limits, 30000000);
    assert_false(budget_has_time(&limits, 10099));
    assert_false(budget_has_time(&limits, 10100 + 1200));
    assert_true(budget_has_time(&limits, 1000000000));
}

TEST(no_limit)
{
    const struct budget_limits all = {.cpu_percent = 100}, none = {0};
    assert_int_equal(budget_clock(&all), 0);
    assert_int_equal(budget_clock(&none), 0);
    budget_spend(&none, 0);
    assert_true(budget_has_time(&all, 0));
    assert_true(budget_has_time(&none, 0));
}

// SPDX-License-Identifier: Apache-2.0
/* The checks of a generation: which servers they are of, and what starting and stopping them changes. */
#include "plugins/upstream/group_fixture.h"

#include "plugins/upstream/checks.h"
#include "server/worker/worker.h"

static struct check_conf check_conf;
static struct checks checks;
static struct mk_worker worker;
static mk__cell *const cells; /* none: counters take those of all threads */

/* A group whose servers refuse connections. */
static int set_up(void **state)
{
    (void)state;
    open_group(0);
    set_time(NOW);
    check_conf = (struct check_conf){
        .what = {CHECK_TCP, MK_STR_NONE}, .timeout_ms = 1000, .interval_ms = 1000, .down = 1, .up = 1};
    worker = (struct mk_worker){.loop = &loop, .cells = &cells};
    checks_init(&checks);
    assert_int_equal(checks_add(&checks, group, &check_conf), 0);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    checks.user.stop(&checks.user);
    checks_free(&checks);
    close_group();
    return 0;
}

static unsigned count_checks(void)
{
    unsigned n = 0;
    for (const struct check *check = checks.first->first; check; check = check->next)
        n++;
    return n;
}

static unsigned count_down(void)
{
    unsigned n = 0;
    for (unsigned i = 0; i < SERVERS; i++)
        n += server_is_down(group_members(group)->items[i].server);
    return n;
}

static void start(void)
{
    checks.user.start(&checks.user, &worker);
    pass(10);
}

TEST(checks_of_all_servers, set_up, tear_down)
{
    start();
    assert_int_equal(count_checks(), SERVERS);
    assert_int_equal(count_down(), SERVERS);
}

TEST(stopped_and_started_again, set_up, tear_down)
{
    start();
    checks.user.stop(&checks.user);
    pass(10000);
    uint64_t next = group_members(group)->items[0].server->checks.next_ms;
    assert_true(next < now_ms);
    start(); /* those that are due begin at once */
    assert_true(group_members(group)->items[0].server->checks.next_ms > now_ms);
    assert_int_equal(count_checks(), SERVERS);
}

/* Has the group that many of its servers, as if others had gone. */
static void set_servers(unsigned n)
{
    group_members(group)->n = n;
    group->version++;
}

TEST(servers_that_come_and_go, set_up, tear_down)
{
    set_servers(1);
    start();
    assert_int_equal(count_down(), 1);
    set_servers(SERVERS);
    pass(2000);
    assert_int_equal(count_checks(), SERVERS);
    assert_int_equal(count_down(), SERVERS);
    set_servers(2);
    pass(5000);
    assert_int_equal(count_checks(), 2);
    set_servers(SERVERS);
}

TEST(without_checks, set_up, tear_down)
{
    start();
    checks.user.stop(&checks.user);
    checks_free(&checks);
    check_conf.what.kind = CHECK_OFF;
    assert_int_equal(checks_add(&checks, group, &check_conf), 0);
    start();
    assert_int_equal(count_checks(), 0);
    assert_int_equal(count_down(), 0);
    assert_int_equal(group_members(group)->items[0].server->checks.id, 0);
}

/* They are made when there is memory. */
TEST(without_memory, set_up, tear_down)
{
    mk__alloc_countdown = 0;
    checks.user.start(&checks.user, &worker);
    mk__alloc_countdown = -1;
    assert_int_equal(count_checks(), 0);
    pass(2000);
    assert_int_equal(count_checks(), SERVERS);
}

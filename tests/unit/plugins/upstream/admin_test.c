// SPDX-License-Identifier: Apache-2.0
/* What a line says of a server, and what the shell has set instead. */
#include "testing.h"

#include "counters_memory.h"

#include "plugins/upstream/groups.h"

static struct server_line line = {.name = MK_STR("127.0.0.1:1"), .weight = 3};
static struct admin admin;
static struct server server = {.admin = &admin};
static const struct member member = {.server = &server, .line = &line};

static void set(enum admin_state state, int weight)
{
    atomic_store(&admin.state, (uint32_t)state);
    atomic_store(&admin.weight_plus, (uint32_t)(weight + 1));
}

static int reset(void **state)
{
    (void)state;
    line.is_draining = line.is_down = false;
    set(ADMIN_UNSET, -1);
    return 0;
}

TEST(names_of_states)
{
    assert_int_equal(admin_find_state(MK_STR("up")), ADMIN_UP);
    assert_int_equal(admin_find_state(MK_STR("drain")), ADMIN_DRAIN);
    assert_int_equal(admin_find_state(MK_STR("down")), ADMIN_DOWN);
    assert_int_equal(admin_find_state(MK_STR("")), ADMIN_UNSET);
    assert_int_equal(admin_find_state(MK_STR("Up")), ADMIN_UNSET);
    assert_int_equal(admin_find_state(MK_STR("drained")), ADMIN_UNSET);
}

TEST(what_was_set_for_a_line_stays_while_it_is_held)
{
    struct admin *one = admin_hold(MK_STR("app"), MK_STR("a:1")), *same = admin_hold(MK_STR("app"), MK_STR("a:1"));
    struct admin *others[] = {admin_hold(MK_STR("app2"), MK_STR("a:1")), admin_hold(MK_STR("app"), MK_STR("a:12"))};
    assert_ptr_equal(one, same);
    assert_ptr_not_equal(one, others[0]);
    assert_ptr_not_equal(one, others[1]);
    atomic_store(&one->state, ADMIN_DOWN);
    admin_release(one);
    assert_int_equal(admin_hold(MK_STR("app"), MK_STR("a:1"))->state, ADMIN_DOWN);
    assert_int_equal(others[0]->state, ADMIN_UNSET);
    for (unsigned i = 0; i < 2; i++) {
        admin_release(same);
        admin_release(others[i]);
    }
    one = admin_hold(MK_STR("app"), MK_STR("a:1"));
    assert_int_equal(one->state, ADMIN_UNSET);
    admin_release(one);
    admin_release(admin_hold(MK_STR_NONE, MK_STR("a:1")));
    admin_release(NULL);
}

TEST(states_of_lines, reset, reset)
{
    assert_int_equal(member_state(&member), ADMIN_UP);
    line.is_draining = true;
    assert_int_equal(member_state(&member), ADMIN_DRAIN);
    line.is_down = true;
    assert_int_equal(member_state(&member), ADMIN_DOWN);
}

TEST(the_shell_comes_first, reset, reset)
{
    line.is_down = true;
    set(ADMIN_UP, -1);
    assert_int_equal(member_state(&member), ADMIN_UP);
    assert_int_equal(member_line_state(&member), ADMIN_DOWN);
    assert_int_equal(member_weight(&member), 3);
    set(ADMIN_UNSET, 0);
    assert_int_equal(member_state(&member), ADMIN_DOWN);
    assert_int_equal(member_weight(&member), 0);
    set(ADMIN_DRAIN, 256);
    assert_int_equal(member_state(&member), ADMIN_DRAIN);
    assert_int_equal(member_weight(&member), 256);
}

TEST(requests_that_a_server_takes, reset, reset)
{
    static const struct {
        enum admin_state state;
        int weight;
        bool takes, takes_sticky;
    } rows[] = {
        {ADMIN_UNSET, -1, true, true},  {ADMIN_UP, -1, true, true},    {ADMIN_DRAIN, -1, false, true},
        {ADMIN_DOWN, -1, false, false}, {ADMIN_UP, 0, false, true},    {ADMIN_UP, 1, true, true},
        {ADMIN_DRAIN, 0, false, true},  {ADMIN_UNSET, 0, false, true},
    };
    for (size_t i = 0; i < MK_COUNT_OF(rows); i++) {
        set(rows[i].state, rows[i].weight);
        assert_int_equal(member_takes(&member, false), rows[i].takes);
        assert_int_equal(member_takes(&member, true), rows[i].takes_sticky);
    }
}

/* ── configurations ── */

static void expect_shown(const struct admin *a, int draining, int taken_down)
{
    assert_int_equal(mk_counter_read(a->counters[0]), draining);
    assert_int_equal(mk_counter_read(a->counters[1]), taken_down);
}

/* What holds is counted: what the shell has set, or what the configuration in use says. */
TEST(states_are_counted, mk_test_counters_open, mk_test_counters_close)
{
    struct admin *a = admin_hold(MK_STR("app"), MK_STR("a:1"));
    expect_shown(a, 0, 0);
    admin_configure(a, ADMIN_DRAIN, 1, false);
    expect_shown(a, 1, 0);
    admin_set_state(a, ADMIN_DOWN);
    expect_shown(a, 0, 1);
    admin_configure(a, ADMIN_UP, 1, true);
    expect_shown(a, 0, 1);
    admin_set_state(a, ADMIN_UNSET);
    expect_shown(a, 0, 0);
    admin_end_configuring();
    admin_release(a);
}

/* A line that the next configuration does not have; requests may still hold it. */
TEST(a_line_that_is_removed, mk_test_counters_open, mk_test_counters_close)
{
    struct admin *a = admin_hold(MK_STR("app"), MK_STR("a:1")), *b = admin_hold(MK_STR("app"), MK_STR("b:1"));
    admin_configure(a, ADMIN_DOWN, 1, false);
    admin_configure(b, ADMIN_DOWN, 1, false);
    admin_end_configuring();
    expect_shown(a, 0, 1);
    admin_configure(b, ADMIN_DOWN, 1, true);
    admin_end_configuring();
    assert_int_equal(a->configured, ADMIN_UNSET);
    expect_shown(a, 0, 0);
    expect_shown(b, 0, 1);
    admin_release(a);
    admin_release(b);
}

/* The counters of the process outlive the line. */
TEST(a_line_that_ends_with_its_state, mk_test_counters_open, mk_test_counters_close)
{
    struct admin *a = admin_hold(MK_STR("app"), MK_STR("a:1"));
    const struct mk_counter *draining = a->counters[0];
    admin_set_state(a, ADMIN_DRAIN);
    assert_int_equal(mk_counter_read(draining), 1);
    admin_release(a);
    assert_int_equal(mk_counter_read(draining), 0);
}

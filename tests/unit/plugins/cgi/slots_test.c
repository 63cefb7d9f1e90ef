// SPDX-License-Identifier: Apache-2.0
/* How many scripts run, and in which order requests get a place. */
#include "turn.h"

#include "plugins/cgi/cgi.h"

#include <errno.h>

enum { WAITERS = 4 };

static struct mk_loop loop;
static struct slots_table list;
static struct slots *slots;
static struct slots_waiter waiters[WAITERS];
static int order[WAITERS];
static unsigned n_called;

static void note_place(struct slots_waiter *w)
{
    order[n_called++] = (int)(w - waiters);
}

static int open_fixture(void **state)
{
    (void)state;
    n_called = 0;
    assert_int_equal(mk__loop_open(&loop, &mk__poller_epoll, &mk__clock_system, NULL), 0);
    slots_table_init(&list);
    slots = slots_hold(&list, MK_STR("a"), 2);
    assert_non_null(slots);
    for (int i = 0; i < WAITERS; i++)
        waiters[i] = (struct slots_waiter){.loop = &loop, .fn = note_place};
    return 0;
}

static int close_fixture(void **state)
{
    (void)state;
    assert_int_equal(slots->running + slots->waiting, 0);
    slots_put(&list, slots);
    assert_int_equal(list.table.n, 0);
    slots_table_release(&list);
    mk__loop_close(&loop);
    return 0;
}

/* Two places, of which both are taken, and those that wait. */
static void fill(int n)
{
    struct slots_waiter first = {.loop = &loop};
    assert_int_equal(slots_take(slots, &first, WAITERS), 0);
    assert_int_equal(slots_take(slots, &first, WAITERS), 0);
    for (int i = 0; i < n; i++)
        assert_int_equal(slots_take(slots, &waiters[i], WAITERS), MK_AGAIN);
}

static void free_all(int n)
{
    while (n--)
        slots_free(slots);
}

TEST(order_of_places, open_fixture, close_fixture)
{
    fill(3);
    slots_free(slots);
    slots_free(slots);
    assert_int_equal(n_called, 0); /* never within the call */
    mk_test_turn(&loop);
    assert_int_equal(n_called, 2);
    assert_int_equal(order[0], 0);
    assert_int_equal(order[1], 1);
    slots_free(slots);
    mk_test_turn(&loop);
    assert_int_equal(order[2], 2);
    free_all(2);
}

TEST(full_queue, open_fixture, close_fixture)
{
    struct slots_waiter more = {.loop = &loop, .fn = note_place};
    fill(WAITERS);
    assert_int_equal(slots_take(slots, &more, WAITERS), -EBUSY);
    slots_cancel(&waiters[1]);
    assert_int_equal(slots_take(slots, &more, WAITERS), MK_AGAIN);
    slots_cancel(&more);
    slots_cancel(&more);
    for (int i = 0; i < WAITERS; i++)
        slots_cancel(&waiters[i]);
    free_all(2);
    mk_test_turn(&loop);
    assert_int_equal(n_called, 0);
}

/* A place whose message is on its way goes to the next one. */
TEST(cancelled_grant, open_fixture, close_fixture)
{
    fill(2);
    slots_free(slots);
    slots_cancel(&waiters[0]);
    mk_test_turn(&loop);
    assert_int_equal(n_called, 1);
    assert_int_equal(order[0], 1);
    free_all(2);
}

/* A reload with fewer places: none is given before enough are free. */
TEST(fewer_places, open_fixture, close_fixture)
{
    fill(3);
    slots_set_max(slots, 1);
    slots_free(slots);
    mk_test_turn(&loop);
    assert_int_equal(n_called, 0);
    slots_free(slots);
    mk_test_turn(&loop);
    assert_int_equal(n_called, 1);
    slots_set_max(slots, 3);
    mk_test_turn(&loop);
    assert_int_equal(n_called, 3);
    free_all(3);
}

/* A reload with more places gives them at once, in the order of the waits. */
TEST(more_places, open_fixture, close_fixture)
{
    fill(3);
    slots_set_max(slots, 4);
    assert_int_equal(n_called, 0); /* never within the call */
    mk_test_turn(&loop);
    assert_int_equal(n_called, 2);
    assert_int_equal(order[0], 0);
    assert_int_equal(order[1], 1);
    slots_cancel(&waiters[2]);
    free_all(4);
}

/* A section that is held once more, by a generation that is not in use yet, does not change the number. */
TEST(places_of_another_hold, open_fixture, close_fixture)
{
    fill(1);
    struct slots *same = slots_hold(&list, MK_STR("a"), 10);
    mk_test_turn(&loop);
    assert_int_equal(n_called, 0);
    slots_put(&list, same);
    slots_cancel(&waiters[0]);
    free_all(2);
}

TEST(keys, open_fixture, close_fixture)
{
    struct slots *same = slots_hold(&list, MK_STR("a"), 2), *other = slots_hold(&list, MK_STR("b"), 2);
    assert_ptr_equal(same, slots);
    assert_ptr_not_equal(other, slots);
    slots_get(&list, other);
    slots_put(&list, other);
    slots_put(&list, same);
    slots_put(&list, other);
}

static int hold_one(void *ctx)
{
    (void)ctx;
    struct slots *s = slots_hold(&list, MK_STR("c"), 2);
    if (!s)
        return -ENOMEM;
    slots_put(&list, s);
    return 0;
}

TEST(failing_memory, open_fixture, close_fixture)
{
    assert_int_equal(mk_test_failing_allocs(hold_one, NULL), 1);
}

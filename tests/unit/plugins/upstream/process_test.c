// SPDX-License-Identifier: Apache-2.0
/* The order in which a thread takes the locks of the process. */
#include "testing.h"

#include "plugins/upstream/process.h"

#include <monkey/base/str.h>

static void leave_all(const enum lock_level *levels, unsigned n)
{
    while (n)
        assert_true(lock_order_leave(levels[--n]));
}

TEST(locks_are_taken_in_their_order)
{
    static const enum lock_level rows[][4] = {
        {LOCK_NAMES, LOCK_POOL, LOCK_TURNS, LOCK_SERVERS},
        {LOCK_NAMES, LOCK_SERVERS, LOCK_POOLS, LOCK_ADMINS},
    };
    for (unsigned i = 0; i < MK_COUNT_OF(rows); i++) {
        for (unsigned k = 0; k < MK_COUNT_OF(rows[i]); k++)
            assert_true(lock_order_enter(rows[i][k]));
        leave_all(rows[i], MK_COUNT_OF(rows[i]));
    }
}

TEST(the_opposite_order_and_a_second_lock_of_a_level_are_found)
{
    for (enum lock_level held = LOCK_NAMES; held <= LOCK_ADMINS; held++)
        for (enum lock_level next = LOCK_NAMES; next <= LOCK_ADMINS; next++) {
            assert_true(lock_order_enter(held));
            assert_int_equal(lock_order_enter(next), next > held);
            assert_true(lock_order_leave(next));
            assert_int_equal(lock_order_leave(held), next != held);
        }
}

TEST(a_lock_is_released_before_one_further_up_is_taken)
{
    assert_true(lock_order_enter(LOCK_NAMES));
    assert_true(lock_order_enter(LOCK_ADMINS));
    assert_true(lock_order_leave(LOCK_ADMINS));
    assert_true(lock_order_enter(LOCK_SERVERS));
    assert_true(lock_order_leave(LOCK_SERVERS));
    assert_true(lock_order_leave(LOCK_NAMES));
    assert_false(lock_order_leave(LOCK_NAMES));
}

TEST(some_locks_are_taken_alone)
{
    static const enum lock_level alone[] = {LOCK_RUNNERS, LOCK_STICKY};
    for (unsigned i = 0; i < MK_COUNT_OF(alone); i++) {
        assert_true(lock_order_enter(alone[i]));
        assert_true(lock_order_leave(alone[i]));
        assert_true(lock_order_enter(LOCK_NAMES));
        assert_false(lock_order_enter(alone[i]));
        assert_true(lock_order_leave(alone[i]));
        assert_true(lock_order_leave(LOCK_NAMES));
    }
}

static void *enter_names(void *ctx)
{
    *(bool *)ctx = lock_order_enter(LOCK_NAMES);
    return NULL;
}

TEST(each_thread_has_its_own_locks)
{
    pthread_t thread;
    bool is_right = false;
    assert_true(lock_order_enter(LOCK_ADMINS));
    assert_int_equal(pthread_create(&thread, NULL, enter_names, &is_right), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(is_right);
    assert_true(lock_order_leave(LOCK_ADMINS));
}

// SPDX-License-Identifier: Apache-2.0
/* Pools of threads: their limits, also while these change, what a thread keeps, and the end of items that wait. */
#include "testing.h"

#include <monkey/base/thread_pool.h>

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>

enum { ITEMS = 200, WAITING = 4 };

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static _Atomic unsigned begun, ended; /* threads */
static _Atomic unsigned done, stopped, running, most;

static void *begin_thread(void)
{
    begun++;
    return &begun;
}

static void end_thread(void *data)
{
    assert_ptr_equal(data, &begun);
    ended++;
}

static void run_item(struct mk_message *item, void *data, bool stopping)
{
    unsigned now = ++running;
    assert_non_null(item);
    assert_ptr_equal(data, &begun);
    if (now > most)
        most = now; /* only compared when one thread runs */
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
    running--;
    if (stopping)
        stopped++;
    else
        done++;
}

static const struct mk_thread_pool_type type = {.thread_name = "test: pool",
                                                .begin = begin_thread,
                                                .end = end_thread,
                                                .run = run_item};

static int set_up(void **state)
{
    (void)state;
    begun = ended = done = stopped = most = 0;
    return 0;
}

/* One thread is busy, as many items as may wait do so, and the next one is refused. */
TEST(full_queue, set_up)
{
    static struct mk_message items[WAITING + 1];
    struct mk_message refused;
    struct mk_thread_pool pool;
    mk_thread_pool_open(&pool, &type, 1, WAITING);
    pthread_mutex_lock(&gate);
    for (unsigned i = 0; i <= WAITING; i++) {
        assert_int_equal(mk_thread_pool_add(&pool, &items[i]), 0);
        while (!running) /* the thread has taken the first one */
            sched_yield();
    }
    assert_int_equal(mk_thread_pool_add(&pool, &refused), -ENOBUFS);
    pthread_mutex_unlock(&gate);
    mk_thread_pool_close(&pool);
    assert_int_equal(done + stopped, WAITING + 1);
    assert_true(done >= 1);
    assert_int_equal(most, 1);
    assert_int_equal(begun, 1);
    assert_int_equal(ended, 1);
}

TEST(limits_change, set_up)
{
    static struct mk_message items[ITEMS];
    struct mk_thread_pool pool;
    mk_thread_pool_open(&pool, &type, 1, 1);
    mk_thread_pool_set_limits(&pool, 3, ITEMS);
    for (unsigned i = 0; i < ITEMS; i++) {
        assert_int_equal(mk_thread_pool_add(&pool, &items[i]), 0);
        if (i == ITEMS / 2)
            mk_thread_pool_set_limits(&pool, 2, ITEMS);
    }
    while (done < ITEMS)
        sched_yield();
    mk_thread_pool_close(&pool);
    assert_int_equal(stopped, 0);
    assert_in_range(begun, 1, 3);
    assert_int_equal(ended, begun);
}

/* With fewer threads than have begun, only so many items run at once. */
TEST(one_of_three, set_up)
{
    static struct mk_message items[ITEMS];
    struct mk_thread_pool pool;
    mk_thread_pool_open(&pool, &type, 3, ITEMS);
    pthread_mutex_lock(&gate);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(mk_thread_pool_add(&pool, &items[i]), 0);
    while (running < 3)
        sched_yield();
    pthread_mutex_unlock(&gate);
    while (done < 3)
        sched_yield();
    mk_thread_pool_set_limits(&pool, 1, ITEMS);
    most = 0;
    for (unsigned i = 3; i < ITEMS; i++)
        assert_int_equal(mk_thread_pool_add(&pool, &items[i]), 0);
    while (done < ITEMS)
        sched_yield();
    assert_int_equal(most, 1);
    mk_thread_pool_close(&pool);
    assert_int_equal(ended, 3);
}

TEST(unused, set_up)
{
    struct mk_thread_pool pool;
    mk_thread_pool_open(&pool, &type, MK_THREAD_POOL_THREADS_MAX, 1);
    mk_thread_pool_close(&pool);
    assert_int_equal(begun, 0);
}

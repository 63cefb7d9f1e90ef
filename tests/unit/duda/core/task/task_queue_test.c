// SPDX-License-Identifier: Apache-2.0
/* The order of tasks, with and without serial queues. */
#include "testing.h"

#include <errno.h>

#include "duda/core/task/task_queue.h"

enum { ITEMS = 8 };

static struct task_queue q;
static struct task_item items[ITEMS];

static int begin(void **state)
{
    (void)state;
    task_queue_init(&q, ITEMS - 1);
    for (int i = 0; i < ITEMS; i++) {
        items[i] = (struct task_item){0};
        mk_list_init(&items[i].node);
    }
    return 0;
}

static int end(void **state)
{
    (void)state;
    assert_int_equal(q.n, 0);
    assert_int_equal(q.n_ready, 0);
    assert_int_equal(q.n_running, 0);
    task_queue_release(&q);
    return 0;
}

static void add(int i, struct duda_serial_queue *serial)
{
    items[i].serial = serial;
    assert_int_equal(task_queue_add(&q, &items[i]), 0);
}

/* Takes the next task, which is items[i]; -1: there is none. */
static void take(int i)
{
    assert_ptr_equal(task_queue_take(&q), i < 0 ? NULL : &items[i]);
}

static void finish(int i)
{
    task_queue_finish(&q, &items[i]);
}

TEST(in_order, begin, end)
{
    take(-1);
    for (int i = 0; i < 3; i++)
        add(i, NULL);
    assert_int_equal(q.n_ready, 3);
    for (int i = 0; i < 3; i++)
        take(i);
    take(-1);
    for (int i = 0; i < 3; i++)
        finish(i);
}

TEST(a_limit, begin, end)
{
    struct duda_serial_queue *serial = task_queue_new_serial(&q);
    for (int i = 0; i < ITEMS - 1; i++)
        add(i, i % 2 ? serial : NULL);
    assert_int_equal(task_queue_add(&q, &items[ITEMS - 1]), -EBUSY);
    take(0);
    assert_int_equal(task_queue_add(&q, &items[ITEMS - 1]), -EBUSY); /* one that runs counts */
    finish(0);
    add(ITEMS - 1, NULL);
    for (int i = 1; i < ITEMS; i++)
        task_queue_remove(&q, &items[i]);
    take(-1);
}

/* One of a serial queue begins when the one before it has ended, behind those that are ready by then. */
TEST(a_line, begin, end)
{
    struct duda_serial_queue *serial = task_queue_new_serial(&q);
    add(0, serial);
    add(1, serial);
    add(2, NULL);
    add(3, serial);
    assert_int_equal(q.n, 4);
    assert_int_equal(q.n_ready, 2);
    take(0);
    take(2);
    take(-1);
    add(4, NULL);
    finish(0);
    take(4);
    take(1);
    take(-1);
    finish(1);
    take(3);
    finish(3);
    add(5, serial);
    take(5);
    finish(5);
    finish(2);
    finish(4);
}

TEST(lines_run_beside_each_other, begin, end)
{
    struct duda_serial_queue *first = task_queue_new_serial(&q), *second = task_queue_new_serial(&q);
    add(0, first);
    add(1, first);
    add(2, second);
    add(3, second);
    take(0);
    take(2);
    take(-1);
    finish(2);
    take(3);
    take(-1);
    finish(0);
    take(1);
    finish(1);
    finish(3);
}

TEST(removing, begin, end)
{
    struct duda_serial_queue *serial = task_queue_new_serial(&q);
    for (int i = 0; i < 4; i++)
        add(i, serial);
    task_queue_remove(&q, &items[2]); /* it waits in the serial queue */
    task_queue_remove(&q, &items[0]); /* it is ready: the next one is then */
    assert_int_equal(q.n, 2);
    take(1);
    take(-1);
    finish(1);
    task_queue_remove(&q, &items[3]);
    take(-1);
    add(0, serial); /* the serial queue continues */
    take(0);
    finish(0);
}

/* A serial queue that is freed runs its tasks first. Sanitizers notice if it is freed too early, or not at all. */
TEST(freeing_lines, begin, end)
{
    struct duda_serial_queue *idle = task_queue_new_serial(&q), *busy = task_queue_new_serial(&q);
    assert_non_null(task_queue_new_serial(&q)); /* is freed with the queue */
    task_queue_free_serial(idle);
    add(0, busy);
    add(1, busy);
    task_queue_free_serial(busy);
    take(0);
    finish(0);
    take(1);
    finish(1);
    struct duda_serial_queue *removed = task_queue_new_serial(&q);
    add(2, removed);
    task_queue_free_serial(removed);
    task_queue_remove(&q, &items[2]);
}

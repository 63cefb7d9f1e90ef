// SPDX-License-Identifier: Apache-2.0
/* When memory that loops read without a lock is freed: after the turns that may have seen it, and not before. */
#include "testing.h"

#include "harness.h"

#include <monkey/base/epoch.h>
#include <stdlib.h>

#include "loop/loop.h"

enum { LOOPS = 3, READERS = 3, WRITES = 20000 };

struct object {
    struct mk_retired retired;
    _Atomic int value; /* 0 when it was freed */
};

static struct mk_epoch_queue queue;
static struct mk_loop loops[LOOPS];
static _Atomic unsigned freed;

static void free_object(struct mk_retired *retired)
{
    struct object *o = MK_CONTAINER_OF(retired, struct object, retired);
    atomic_store_explicit(&o->value, 0, memory_order_relaxed);
    freed++;
    free(o);
}

static void retire_new(void)
{
    struct object *o = calloc(1, sizeof(*o));
    mk_epoch_retire(&queue, &o->retired, free_object);
}

static void open_all(void)
{
    mk_epoch_queue_init(&queue);
    freed = 0;
    for (int i = 0; i < LOOPS; i++)
        assert_int_equal(mk__loop_open(&loops[i], &mk__poller_epoll, &mk__clock_system, NULL), 0);
}

static void close_all(void)
{
    for (int i = 0; i < LOOPS; i++)
        mk__loop_close(&loops[i]);
    mk_epoch_queue_release(&queue);
}

TEST(turns_delay_frees)
{
    open_all();
    mk_epoch_join(&loops[0]); /* is in a turn now */
    mk_epoch_join(&loops[1]);
    mk__epoch_idle(&loops[1].epoch);
    retire_new();
    assert_int_equal(mk_epoch_reclaim(&queue), 1);
    mk__epoch_enter(&loops[1].epoch); /* after the object was unlinked */
    assert_int_equal(mk_epoch_reclaim(&queue), 1);
    assert_int_equal(freed, 0);
    mk__epoch_idle(&loops[0].epoch);
    assert_int_equal(mk_epoch_reclaim(&queue), 0);
    assert_int_equal(freed, 1);
    retire_new();
    assert_int_equal(mk_epoch_reclaim(&queue), 1); /* loops[1] is still in its turn */
    mk__epoch_idle(&loops[1].epoch);
    mk__epoch_enter(&loops[1].epoch);
    retire_new();
    assert_int_equal(mk_epoch_reclaim(&queue), 1); /* the second of both waits */
    assert_int_equal(freed, 2);
    close_all();
    assert_int_equal(freed, 3);
}

TEST(loops_that_join_and_leave)
{
    open_all();
    retire_new();
    assert_int_equal(mk_epoch_reclaim(&queue), 0); /* no loop takes part */
    mk_epoch_join(&loops[0]);
    mk_epoch_join(&loops[0]);
    retire_new();
    mk_epoch_leave(&loops[0]);
    assert_int_equal(mk_epoch_reclaim(&queue), 1);
    mk_epoch_leave(&loops[0]);
    assert_int_equal(mk_epoch_reclaim(&queue), 0);
    mk_epoch_join(&loops[1]);
    retire_new();
    mk__loop_close(&loops[1]); /* without leaving */
    assert_int_equal(mk_epoch_reclaim(&queue), 0);
    assert_int_equal(mk__loop_open(&loops[1], &mk__poller_epoll, &mk__clock_system, NULL), 0);
    close_all();
    assert_int_equal(freed, 3);
}

/* A loop may find an object after a look at all loops, and before it is retired: that look must not free it. */
TEST(what_is_retired_after_the_look)
{
    open_all();
    mk_epoch_join(&loops[0]);
    for (unsigned i = 0; i < 2; i++) {
        uint64_t oldest = mk__epoch_oldest();
        retire_new();
        assert_true(queue.first->epoch >= oldest);
        mk__epoch_idle(&loops[0].epoch);
        assert_true(queue.first->epoch < mk__epoch_oldest());
        assert_int_equal(mk_epoch_reclaim(&queue), 0);
    }
    close_all();
}

static struct mk_task task;
static bool stays;

static void retire_in_turn(struct mk_task *t)
{
    (void)t;
    retire_new();
    stays = mk_epoch_reclaim(&queue) == 1;
}

TEST(turns_of_a_loop)
{
    open_all();
    mk_epoch_join(&loops[0]);
    mk_task_init(&task, retire_in_turn);
    mk_task_schedule(&loops[0], &task);
    assert_int_equal(mk__loop_turn(&loops[0]), 0);
    assert_true(stays);
    assert_int_equal(mk_epoch_reclaim(&queue), 1); /* until the loop waits again */
    mk_task_schedule(&loops[0], &task);
    assert_int_equal(mk__loop_turn(&loops[0]), 0);
    assert_int_equal(freed, 1);
    close_all();
}

/* ── threads: TSan and ASan see a use after free ── */

static _Atomic(struct object *) shared;
static _Atomic bool ends;
static _Atomic int readers_ready;

static void read_shared(struct mk_task *t)
{
    (void)t;
    for (int i = 0; i < 3; i++) {
        struct object *o = atomic_load_explicit(&shared, memory_order_acquire);
        for (int n = 0; n < 1000; n++)
            assert_int_equal(atomic_load_explicit(&o->value, memory_order_relaxed), 1);
    }
}

static void *run_reader(void *ctx)
{
    struct mk_loop *loop = ctx;
    struct mk_task work;
    mk_task_init(&work, read_shared);
    mk_epoch_join(loop);
    readers_ready++;
    while (!ends) {
        mk_task_schedule(loop, &work);
        assert_int_equal(mk__loop_turn(loop), 0);
    }
    mk_epoch_leave(loop);
    return NULL;
}

static struct object *new_shared(void)
{
    struct object *o = calloc(1, sizeof(*o));
    o->value = 1;
    return o;
}

static void *run_reclaimer(void *ctx)
{
    while (!ends)
        mk_epoch_reclaim(ctx);
    return NULL;
}

static void check_threads(int readers)
{
    pthread_t threads[READERS], reclaimer;
    open_all();
    ends = false;
    readers_ready = 0;
    shared = new_shared();
    for (int i = 0; i < readers; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_reader, &loops[i]), 0);
    assert_int_equal(pthread_create(&reclaimer, NULL, run_reclaimer, &queue), 0);
    while (readers_ready < readers)
        sched_yield();
    for (int i = 0; i < WRITES; i++) {
        struct object *old = atomic_exchange_explicit(&shared, new_shared(), memory_order_acq_rel);
        mk_epoch_retire(&queue, &old->retired, free_object);
        mk_epoch_reclaim(&queue);
    }
    ends = true;
    pthread_join(reclaimer, NULL);
    for (int i = 0; i < readers; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(mk_epoch_reclaim(&queue), 0);
    assert_int_equal(freed, WRITES);
    free(shared);
    close_all();
}

TEST(readers_and_a_writer)
{
    check_threads(READERS);
}

/* With one reader all of them wait often: what is retired after that look must wait nevertheless. */
TEST(one_reader)
{
    check_threads(1);
}

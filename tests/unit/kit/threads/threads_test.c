// SPDX-License-Identifier: Apache-2.0
/* Records of threads: as long as a worker or a caller needs them; calls, and calls to those that have ended. */
#include "testing.h"

#include "loop/loop.h"
#include "server/worker/worker.h"

#include <monkey/kit/threads.h>

#include <errno.h>

enum { THREADS = 3 };

struct record {
    struct mk_thread base;
    unsigned opened;
};

static unsigned ended, released;

static void on_open(struct mk_thread *thread, struct mk_worker *worker)
{
    assert_ptr_equal(mk_worker_loop(worker), thread->loop);
    MK_CONTAINER_OF(thread, struct record, base)->opened++;
}

static void on_end(struct mk_thread *thread)
{
    assert_int_equal(MK_CONTAINER_OF(thread, struct record, base)->opened, 1);
    assert_false(thread->ended);
    ended++;
}

static void on_release(struct mk_thread *thread)
{
    assert_true(thread->ended);
    released++;
}

static const struct mk_thread_type type = {sizeof(struct record), on_open, on_end, on_release};

static struct mk_threads all;
static struct mk_loop loops[THREADS];
static struct mk_worker workers[THREADS];
static struct mk_thread_worker own[THREADS];

static int set_up(void **state)
{
    (void)state;
    ended = released = 0;
    mk_threads_init(&all, &type);
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (struct mk_worker){.loop = &loops[i], .index = THREADS - i};
        assert_int_equal(mk__loop_open(&loops[i], &mk__poller_epoll, &mk__clock_system, NULL), 0);
        assert_int_equal(mk_threads_add_worker(&all, &own[i], &workers[i]), 0);
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (unsigned i = 0; i < THREADS; i++) {
        if (!mk_loop_has_ended(&loops[i]))
            mk__loop_close(&loops[i]);
        if (own[i].thread)
            mk_threads_remove_worker(&own[i]);
        own[i].thread = NULL;
    }
    mk_threads_release(&all);
    return 0;
}

static void remove_worker(unsigned i)
{
    mk_threads_remove_worker(&own[i]);
    own[i].thread = NULL;
}

/* ── records ── */

static bool is_low(const struct mk_thread *thread, const void *ctx)
{
    return thread->index < *(const unsigned *)ctx;
}

TEST(a_list_by_index, set_up, tear_down)
{
    struct mk_thread *found[THREADS];
    const unsigned limit = 3;
    assert_int_equal(mk_threads_list(&all, found, THREADS, NULL, NULL), THREADS);
    for (unsigned i = 0; i < THREADS; i++) {
        assert_ptr_equal(found[i], own[THREADS - 1 - i].thread);
        mk_thread_put(found[i]);
    }
    assert_int_equal(mk_threads_list(&all, found, 1, is_low, &limit), 2);
    assert_int_equal(found[0]->index, 1);
    mk_thread_put(found[0]);
}

TEST(one_record_for_all_workers_of_a_thread, set_up, tear_down)
{
    struct mk_worker newer = workers[1];
    struct mk_thread_worker second;
    assert_int_equal(mk_threads_add_worker(&all, &second, &newer), 0);
    assert_ptr_equal(second.thread, own[1].thread);
    assert_ptr_equal(second.thread->workers.prev, &second.node);
    remove_worker(1);
    assert_int_equal(ended, 0);
    mk_threads_remove_worker(&second);
    assert_int_equal(ended, 1);
    assert_int_equal(released, 1);
}

/* ── calls ── */

struct counted_call {
    struct mk_thread_call call;
    struct mk_thread *ran_in;
    unsigned n, removes; /* the worker that it removes; 0: none */
};

static void count_call(struct mk_thread_call *call, struct mk_thread *thread)
{
    struct counted_call *c = MK_CONTAINER_OF(call, struct counted_call, call);
    c->n++;
    c->ran_in = thread;
    if (c->removes)
        remove_worker(c->removes);
}

TEST(calls_run_in_the_loop, set_up, tear_down)
{
    struct counted_call calls[2] = {{.call.fn = count_call}, {.call.fn = count_call}};
    assert_int_equal(mk_thread_call(own[0].thread, &calls[0].call), 0);
    assert_int_equal(mk_thread_call(own[2].thread, &calls[1].call), 0);
    assert_int_equal(mk__loop_turn(&loops[0]), 0);
    assert_ptr_equal(calls[0].ran_in, own[0].thread);
    assert_int_equal(calls[1].n, 0);
    assert_int_equal(mk__loop_turn(&loops[2]), 0);
    assert_ptr_equal(calls[1].ran_in, own[2].thread);
}

/* A reload has removed the plugin: the loop runs on. */
TEST(a_thread_that_ends, set_up, tear_down)
{
    struct counted_call calls[2] = {{.call.fn = count_call, .ran_in = own[1].thread}, {.call.fn = count_call}};
    struct mk_thread *held = mk_thread_get(own[1].thread);
    assert_int_equal(mk_thread_call(held, &calls[0].call), 0);
    remove_worker(1);
    assert_int_equal(calls[0].n, 1);
    assert_null(calls[0].ran_in);
    assert_int_equal(mk_thread_call(held, &calls[1].call), -ECANCELED);
    assert_int_equal(released, 0);
    mk_thread_put(held);
    assert_int_equal(released, 1);
    mk__loop_close(&loops[1]);
    assert_int_equal(calls[0].n, 1);
}

/* The server stops: the loop ends before the worker. */
TEST(a_loop_that_ends, set_up, tear_down)
{
    struct counted_call calls[2] = {{.call.fn = count_call}, {.call.fn = count_call, .ran_in = own[1].thread}};
    assert_int_equal(mk_thread_call(own[1].thread, &calls[0].call), 0);
    mk__loop_close(&loops[1]);
    assert_ptr_equal(calls[0].ran_in, own[1].thread);
    assert_int_equal(mk_thread_call(own[1].thread, &calls[1].call), 0);
    assert_int_equal(calls[1].n, 0);
    remove_worker(1);
    assert_int_equal(calls[1].n, 1);
    assert_null(calls[1].ran_in);
}

TEST(a_call_ends_its_thread, set_up, tear_down)
{
    struct counted_call calls[3] = {{.call.fn = count_call},
                                    {.call.fn = count_call, .removes = 1},
                                    {.call.fn = count_call, .ran_in = own[1].thread}};
    const struct mk_thread *thread = own[1].thread;
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(mk_thread_call(own[1].thread, &calls[i].call), 0);
    assert_int_equal(mk__loop_turn(&loops[1]), 0);
    assert_ptr_equal(calls[0].ran_in, thread);
    assert_int_equal(calls[2].n, 1);
    assert_null(calls[2].ran_in);
    assert_int_equal(released, 1);
}

// SPDX-License-Identifier: Apache-2.0
/* The disk threads: work elsewhere, the result in the loop, whatever else happens. */
#include "testing.h"

#include "harness.h"

#include "loop/job.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>

enum { JOBS = 200 };

struct work {
    struct mk_job job;
    pthread_t worker;
    bool signals_blocked;
    unsigned worked, done;
};

static struct work works[JOBS];
static pthread_t loop_thread;
static unsigned done_total;
static struct mk_test_fixture fixture;

static void work(struct mk_job *job)
{
    struct work *w = MK_CONTAINER_OF(job, struct work, job);
    sigset_t set;
    pthread_sigmask(SIG_BLOCK, NULL, &set);
    w->signals_blocked = sigismember(&set, SIGTERM) && sigismember(&set, SIGPIPE);
    w->worker = pthread_self();
    w->worked++;
}

static void finish(struct mk_job *job)
{
    struct work *w = MK_CONTAINER_OF(job, struct work, job);
    assert_true(pthread_equal(pthread_self(), loop_thread));
    assert_int_equal(w->worked, 1);
    assert_false(pthread_equal(w->worker, loop_thread));
    assert_true(w->signals_blocked);
    w->done++;
    done_total++;
}

static void start(struct work *w)
{
    *w = (struct work){.job = {.work = work, .done = finish}};
    assert_int_equal(mk_job_submit(&fixture.loop, &w->job), 0);
}

/* Opens a pool and a loop, and starts all jobs. */
static void start_all(struct mk_thread_pool *jobs, unsigned threads_max)
{
    loop_thread = pthread_self();
    done_total = 0;
    mk__job_open_pool(jobs, threads_max);
    assert_int_equal(mk_test_fixture_open(&fixture, jobs), 0);
    for (int i = 0; i < JOBS; i++)
        start(&works[i]);
}

TEST(jobs_come_back)
{
    struct mk_thread_pool jobs;
    start_all(&jobs, 3);
    while (done_total < JOBS)
        assert_true(mk_test_wait_wakeup(&fixture));
    for (int i = 0; i < JOBS; i++)
        assert_int_equal(works[i].done, 1);
    assert_in_range(jobs.threads, 1, 3);
    start(&works[0]);      /* threads that were idle work again */
    while (!works[0].done) /* a late wakeup may come first */
        assert_true(mk_test_wait_wakeup(&fixture));
    assert_int_equal(works[0].done, 1);
    assert_in_range(jobs.threads, 1, 3);
    mk_thread_pool_close(&jobs);
    mk_test_fixture_close(&fixture);
}

TEST(closing_finishes_the_queue)
{
    struct mk_thread_pool jobs;
    start_all(&jobs, 1);
    mk_thread_pool_close(&jobs);
    mk_test_fixture_close(&fixture); /* runs the loop's last messages */
    assert_int_equal(done_total, JOBS);
}

TEST(without_threads)
{
    struct work w = {.job = {.work = work, .done = finish}};
    struct mk_thread_pool jobs;
    assert_int_equal(mk_test_fixture_open(&fixture, NULL), 0);
    assert_int_equal(mk_job_submit(&fixture.loop, &w.job), -EAGAIN);
    mk_test_fixture_close(&fixture);
    assert_int_equal(w.worked, 0);
    mk__job_open_pool(&jobs, 16); /* no thread until there is work */
    assert_int_equal(jobs.threads, 0);
    mk_thread_pool_close(&jobs);
}

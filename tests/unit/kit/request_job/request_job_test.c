// SPDX-License-Identifier: Apache-2.0
/* Jobs for requests: those that are done in time, those whose request has ended, and those that cannot be started. */
#include "http/h1_fixture.h"

#include <monkey/kit/request_job.h>

#include "http/request.h"
#include "loop/job.h"
#include "server/worker/worker.h"

#include <errno.h>
#include <semaphore.h>

struct work {
    struct mk_request_job base;
    int zero; /* at first */
};

static struct mk_thread_pool jobs;
static struct mk_worker worker; /* it is not replaced, so that its last reference does not free it */
static sem_t may_work;
static struct mk_str text;
static unsigned n_worked, n_done, n_left;
static int start_result;
static long alloc_countdown; /* while a job is made; -1: no allocation fails */

static void do_work(struct mk_request_job *job)
{
    const struct work *work = (struct work *)job;
    while (sem_wait(&may_work) < 0)
        assert_int_equal(errno, EINTR);
    n_worked += work->zero == 0 && mk_str_eq(job->text, text) && !job->text.p[text.len];
}

static void end_work(struct mk_request_job *job, struct mk_request *req)
{
    assert_str_equal(job->text, text.p);
    if (!req) {
        n_left++;
        return;
    }
    n_done++;
    mk_response_write(req, MK_STR("done"));
    mk_response_end(req);
}

static const struct mk_request_job_type type = {sizeof(struct work), do_work, end_work};

static void start_job(struct mk_request *req, struct mk_test_fixture *fixture)
{
    (void)fixture;
    void *of_fixture = req->worker;
    req->worker = &worker;
    mk__alloc_countdown = alloc_countdown;
    struct work *work = mk_request_job_new(req, &type, text);
    mk__alloc_countdown = -1;
    req->worker = of_fixture;
    start_result = work ? mk_request_job_start(&work->base) : -ENOMEM;
    if (start_result < 0)
        mk_response_error(req, 503);
    else
        mk_request_wait(req, 1000);
}

static void open_all(void)
{
    n_worked = n_done = n_left = 0;
    alloc_countdown = -1;
    text = MK_STR("/a/path");
    assert_int_equal(sem_init(&may_work, 0, 0), 0);
    mk__job_open_pool(&jobs, 1);
    assert_int_equal(mk_test_fixture_open(&w, &jobs), 0);
    w.handler = start_job;
    assert_int_equal(mk_test_http_open(&w), 0);
}

static void close_all(void)
{
    mk__conn_abort_all(&w.http);
    mk_thread_pool_close(&jobs);
    assert_int_equal(worker.refs, 0);
    close_fixture(); /* fails if memory is left */
    sem_destroy(&may_work);
}

static struct mk_test_client *ask(void)
{
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(CLOSE));
    assert_non_null(c);
    mk_test_settle(&w);
    return c;
}

TEST(a_request_gets_its_result)
{
    open_all();
    struct mk_test_client *c = ask();
    assert_int_equal(worker.refs, 1);
    sem_post(&may_work);
    assert_true(mk_test_wait_wakeup(&w));
    assert_non_null(strstr(mk_test_received(c).p, "\r\n\r\ndone"));
    assert_int_equal(n_worked, 1);
    assert_int_equal(n_done, 1);
    close_all();
}

TEST(an_empty_text)
{
    open_all();
    text = MK_STR("");
    ask();
    sem_post(&may_work);
    assert_true(mk_test_wait_wakeup(&w));
    assert_int_equal(n_worked, 1);
    assert_int_equal(n_done, 1);
    close_all();
}

/* The worker is held until the job is done, and its end is known. */
TEST(a_request_that_has_ended)
{
    open_all();
    struct mk_test_client *c = ask();
    mk_test_reset(c);
    mk_test_settle(&w);
    assert_int_equal(w.done, 1);
    assert_int_equal(worker.refs, 1);
    sem_post(&may_work);
    assert_true(mk_test_wait_wakeup(&w));
    assert_int_equal(n_left, 1);
    assert_int_equal(n_done, 0);
    close_all();
}

TEST(a_server_that_ends)
{
    open_all();
    w.loop.thread_pool = NULL;
    ask();
    assert_int_equal(start_result, -EAGAIN);
    w.loop.thread_pool = &jobs;
    assert_int_equal(n_done + n_left + n_worked, 0);
    close_all();
}

/* The first allocation fails. */
TEST(no_memory)
{
    open_all();
    alloc_countdown = 0;
    ask();
    assert_int_equal(start_result, -ENOMEM);
    assert_int_equal(n_done + n_left + n_worked, 0);
    close_all();
}

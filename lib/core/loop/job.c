// SPDX-License-Identifier: Apache-2.0
/*
 * Jobs on disk threads (loop/job.h). Requests whose files are in the page cache have none.
 */
#include "loop/job.h"

#include "loop/loop.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>

static void run_job(struct mk_message *item, void *data, bool stopping)
{
    struct mk_job *job = MK_CONTAINER_OF(item, struct mk_job, message);
    (void)data;
    (void)stopping;
    job->work(job);
    mk_post(job->loop, &job->message);
}

void mk__job_open_pool(struct mk_thread_pool *pool, unsigned threads_max)
{
    static const struct mk_thread_pool_type disk = {.thread_name = "monkey: disk",
                                                    .stack_bytes = 128 * 1024,
                                                    .run = run_job};
    mk_thread_pool_open(pool, &disk, threads_max, UINT_MAX);
}

static void finish_job(struct mk_message *message)
{
    struct mk_job *job = MK_CONTAINER_OF(message, struct mk_job, message);
    assert(job->loop->jobs_pending);
    job->loop->jobs_pending--;
    job->done(job);
}

int mk_job_submit(struct mk_loop *loop, struct mk_job *job)
{
    assert(mk__loop_is_owner(loop) && job->work && job->done);
    if (!loop->thread_pool)
        return -EAGAIN;
    job->loop = loop;
    job->message = (struct mk_message){.fn = finish_job};
    int err = mk_thread_pool_add(loop->thread_pool, &job->message);
    loop->jobs_pending += err == 0;
    return err;
}

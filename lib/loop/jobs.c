// SPDX-License-Identifier: Apache-2.0
/*
 * The pool of disk threads of loop/jobs.h: one queue, one lock, off the path of every request whose files
 * are in the page cache.
 */
#include "loop/jobs.h"

#include "loop/loop.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>

enum { STACK_BYTES = 128 * 1024 };

void mk__jobs_open(struct mk__jobs *jobs, unsigned threads_max)
{
    *jobs = (struct mk__jobs){.threads_max = threads_max, .last = &jobs->first};
    pthread_mutex_init(&jobs->lock, NULL);
    pthread_cond_init(&jobs->wake, NULL);
#ifndef MK_LEAN
    if (sched_getaffinity(0, sizeof(jobs->processors), &jobs->processors) < 0)
        CPU_ZERO(&jobs->processors);
#endif
}

static void finish(struct mk_message *message)
{
    struct mk_job *job = MK_OWNER(message, struct mk_job, message);
    job->loop->jobs_out--;
    job->done(job);
}

static struct mk_job *take(struct mk__jobs *jobs)
{
    while (!jobs->first && !jobs->stopping) {
        jobs->idle++;
        pthread_cond_wait(&jobs->wake, &jobs->lock);
        jobs->idle--;
    }
    struct mk_message *message = jobs->first;
    if (!message)
        return NULL;
    jobs->queued--;
    jobs->first = message->next;
    if (!jobs->first)
        jobs->last = &jobs->first;
    return MK_OWNER(message, struct mk_job, message);
}

static void *work(void *ctx)
{
    struct mk__jobs *jobs = ctx;
    prctl(PR_SET_NAME, "monkey: disk");
    pthread_mutex_lock(&jobs->lock);
    for (struct mk_job *job; (job = take(jobs));) {
        pthread_mutex_unlock(&jobs->lock);
        job->work(job);
        mk_post(job->loop, &job->message);
        pthread_mutex_lock(&jobs->lock);
    }
    pthread_mutex_unlock(&jobs->lock);
    return NULL;
}

static int start_thread(struct mk__jobs *jobs)
{
    pthread_attr_t attr;
    sigset_t all, before;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
#ifndef MK_LEAN
    if (CPU_COUNT(&jobs->processors)) /* not those of the one that the worker may be bound to */
        pthread_attr_setaffinity_np(&attr, sizeof(jobs->processors), &jobs->processors);
#endif
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are the program's business */
    int err = pthread_create(&jobs->ids[jobs->threads], &attr, work, jobs);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    if (err == 0)
        jobs->threads++;
    return -err;
}

int mk_job_submit(struct mk_loop *loop, struct mk_job *job)
{
    struct mk__jobs *jobs = loop->jobs;
    int err = 0;

    if (!jobs)
        return -EAGAIN;
    job->loop = loop;
    job->message = (struct mk_message){.fn = finish};
    pthread_mutex_lock(&jobs->lock);
    if (jobs->queued >= jobs->idle && jobs->threads < jobs->threads_max)
        err = start_thread(jobs);
    if (jobs->threads) {
        err = 0; /* whoever is there will come to it */
        loop->jobs_out++;
        jobs->queued++;
        *jobs->last = &job->message;
        jobs->last = &job->message.next;
        pthread_cond_signal(&jobs->wake);
    }
    pthread_mutex_unlock(&jobs->lock);
    return err;
}

void mk__jobs_close(struct mk__jobs *jobs)
{
    pthread_mutex_lock(&jobs->lock);
    jobs->stopping = true;
    pthread_cond_broadcast(&jobs->wake);
    pthread_mutex_unlock(&jobs->lock);
    for (unsigned i = 0; i < jobs->threads; i++)
        pthread_join(jobs->ids[i], NULL);
    pthread_cond_destroy(&jobs->wake);
    pthread_mutex_destroy(&jobs->lock);
}

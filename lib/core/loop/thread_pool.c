// SPDX-License-Identifier: Apache-2.0
/*
 * The disk threads of loop/thread_pool.h: one queue and one lock. Requests whose files are in the page cache use
 * neither.
 */
#include "loop/thread_pool.h"

#include "loop/loop.h"

#include <monkey/thread_start.h>

#include <assert.h>
#include <errno.h>
#include <sys/prctl.h>

enum { STACK_BYTES = 128 * 1024 };

void mk__thread_pool_open(struct mk__thread_pool *pool, unsigned threads_max)
{
    assert(threads_max && threads_max <= MK_COUNT_OF(pool->ids));
    *pool = (struct mk__thread_pool){.threads_max = threads_max, .last = &pool->first};
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->wake, NULL);
}

static void finish_job(struct mk_message *message)
{
    struct mk_job *job = MK_CONTAINER_OF(message, struct mk_job, message);
    assert(job->loop->jobs_pending);
    job->loop->jobs_pending--;
    job->done(job);
}

static struct mk_job *take_job(struct mk__thread_pool *pool)
{
    while (!pool->first && !pool->stopping) {
        pool->idle++;
        pthread_cond_wait(&pool->wake, &pool->lock);
        pool->idle--;
    }
    struct mk_message *message = pool->first;
    if (!message)
        return NULL;
    assert(pool->queued);
    pool->queued--;
    pool->first = message->next;
    if (!pool->first)
        pool->last = &pool->first;
    return MK_CONTAINER_OF(message, struct mk_job, message);
}

static void *run_thread(void *ctx)
{
    struct mk__thread_pool *pool = ctx;
    prctl(PR_SET_NAME, "monkey: disk");
    pthread_mutex_lock(&pool->lock);
    for (struct mk_job *job; (job = take_job(pool));) {
        pthread_mutex_unlock(&pool->lock);
        job->work(job);
        mk_post(job->loop, &job->message);
        pthread_mutex_lock(&pool->lock);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

static int start_thread(struct mk__thread_pool *pool)
{
    int err = mk_thread_start(&pool->ids[pool->threads], STACK_BYTES, run_thread, pool);
    if (err == 0)
        pool->threads++;
    return err;
}

int mk_job_submit(struct mk_loop *loop, struct mk_job *job)
{
    assert(mk__loop_is_owner(loop) && job->work && job->done);
    struct mk__thread_pool *pool = loop->thread_pool;
    int err = 0;

    if (!pool)
        return -EAGAIN;
    job->loop = loop;
    job->message = (struct mk_message){.fn = finish_job};
    pthread_mutex_lock(&pool->lock);
    if (pool->queued >= pool->idle && pool->threads < pool->threads_max)
        err = start_thread(pool);
    if (pool->threads) {
        err = 0; /* the threads that exist will run it */
        loop->jobs_pending++;
        pool->queued++;
        *pool->last = &job->message;
        pool->last = &job->message.next;
        pthread_cond_signal(&pool->wake);
    }
    pthread_mutex_unlock(&pool->lock);
    return err;
}

void mk__thread_pool_close(struct mk__thread_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    pool->stopping = true;
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
    for (unsigned i = 0; i < pool->threads; i++)
        pthread_join(pool->ids[i], NULL);
    assert(!pool->first);
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->lock);
}

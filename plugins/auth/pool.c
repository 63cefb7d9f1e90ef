// SPDX-License-Identifier: Apache-2.0
/*
 * The threads that compute hashes (pool.h).
 */
#include "pool.h"

#include <monkey/arena.h>
#include <monkey/thread_start.h>

#include <assert.h>
#include <errno.h>
#include <pthread.h>

struct pool {
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t more;
    struct pool_job *first, **last;
    unsigned queued, queue_max;
    unsigned busy, busy_max;
    uint64_t count;
    bool stopping;
    unsigned n_threads;
    pthread_t threads[POOL_THREADS_MAX];
};

struct pool *pool_new(void)
{
    struct pool *p = mk_account_alloc(NULL, sizeof(*p));
    if (!p)
        return NULL;
    memset(p, 0, sizeof(*p));
    p->last = &p->first;
    p->busy_max = p->queue_max = 1;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->more, NULL);
    return p;
}

static struct pool_job *take_job(struct pool *p)
{
    struct pool_job *job = p->first;
    assert(job && p->queued);
    p->first = job->next;
    p->last = p->first ? p->last : &p->first;
    p->queued--;
    return job;
}

/* Runs jobs until the pool stops. With the lock held. */
static void run_jobs(struct pool *p, struct hash_work *w)
{
    while (!p->stopping) {
        if (!p->first || p->busy >= p->busy_max) {
            pthread_cond_wait(&p->more, &p->lock);
            continue;
        }
        struct pool_job *job = take_job(p);
        p->busy++;
        p->count++;
        pthread_mutex_unlock(&p->lock);
        job->run(job, w);
        pthread_mutex_lock(&p->lock);
        p->busy--;
    }
}

static void *run_thread(void *ctx)
{
    struct pool *p = ctx;
    struct hash_work *w = hash_work_new(); /* without it each job fails */
    pthread_mutex_lock(&p->lock);
    run_jobs(p, w);
    pthread_mutex_unlock(&p->lock);
    hash_work_free(w);
    return NULL;
}

static void start_thread(struct pool *p)
{
    if (mk_thread_start(&p->threads[p->n_threads], 0, run_thread, p) < 0)
        return;
    pthread_setname_np(p->threads[p->n_threads], "auth-hash");
    p->n_threads++;
}

void pool_set_limits(struct pool *p, unsigned threads, unsigned queue_max)
{
    assert(threads > 0 && threads <= POOL_THREADS_MAX && queue_max > 0);
    pthread_mutex_lock(&p->lock);
    p->busy_max = threads;
    p->queue_max = queue_max;
    pthread_cond_broadcast(&p->more);
    pthread_mutex_unlock(&p->lock);
}

/* Starts another thread if all are busy and more are allowed. Returns 0, or -EAGAIN (there is none at all). */
static int ensure_thread(struct pool *p)
{
    if (p->n_threads < p->busy_max && p->busy + p->queued >= p->n_threads)
        start_thread(p);
    return p->n_threads ? 0 : -EAGAIN;
}

static int queue_job(struct pool *p, struct pool_job *job)
{
    if (p->stopping || p->queued >= p->queue_max)
        return -ENOBUFS;
    int err = ensure_thread(p);
    if (err < 0)
        return err;
    job->next = NULL;
    *p->last = job;
    p->last = &job->next;
    p->queued++;
    pthread_cond_signal(&p->more);
    return 0;
}

int pool_submit(struct pool *p, struct pool_job *job)
{
    pthread_mutex_lock(&p->lock);
    int err = queue_job(p, job);
    pthread_mutex_unlock(&p->lock);
    return err;
}

uint64_t pool_count(struct pool *p)
{
    pthread_mutex_lock(&p->lock);
    uint64_t count = p->count;
    pthread_mutex_unlock(&p->lock);
    return count;
}

void pool_stop(struct pool *p)
{
    pthread_mutex_lock(&p->lock);
    p->stopping = true;
    pthread_cond_broadcast(&p->more);
    pthread_mutex_unlock(&p->lock);
    for (unsigned i = 0; i < p->n_threads; i++)
        pthread_join(p->threads[i], NULL);
    while (p->first) {
        struct pool_job *job = take_job(p);
        job->run(job, NULL);
    }
    pthread_cond_destroy(&p->more);
    pthread_mutex_destroy(&p->lock);
    mk_account_free(NULL, p, sizeof(*p));
}

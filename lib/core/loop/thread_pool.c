// SPDX-License-Identifier: Apache-2.0
/*
 * Pools of threads (<monkey/base/thread_pool.h>): one queue and one lock.
 */
#include <monkey/base/thread_pool.h>
#include <monkey/base/thread_start.h>

#include <assert.h>
#include <errno.h>
#include <sys/prctl.h>

void mk_thread_pool_open(struct mk_thread_pool *pool, const struct mk_thread_pool_type *type, unsigned threads_max,
                         unsigned queue_max)
{
    assert(type->run && threads_max && threads_max <= MK_COUNT_OF(pool->ids) && queue_max);
    *pool =
        (struct mk_thread_pool){.type = type, .last = &pool->first, .threads_max = threads_max, .queue_max = queue_max};
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->wake, NULL);
}

/* Waits for an item that may run. Returns NULL if the thread is to end. With the lock. */
static struct mk_message *take_item(struct mk_thread_pool *pool)
{
    while (!pool->stopping && (!pool->first || pool->busy >= pool->threads_max))
        pthread_cond_wait(&pool->wake, &pool->lock);
    struct mk_message *item = pool->first;
    if (!item)
        return NULL;
    assert(pool->queued);
    pool->queued--;
    pool->busy++;
    pool->first = item->next;
    if (!pool->first)
        pool->last = &pool->first;
    return item;
}

static void *run_thread(void *ctx)
{
    struct mk_thread_pool *pool = ctx;
    const struct mk_thread_pool_type *type = pool->type;
    prctl(PR_SET_NAME, type->thread_name);
    void *data = type->begin ? type->begin() : NULL;
    pthread_mutex_lock(&pool->lock);
    for (struct mk_message *item; (item = take_item(pool)); pool->busy--) {
        bool stopping = pool->stopping;
        pthread_mutex_unlock(&pool->lock);
        type->run(item, data, stopping);
        pthread_mutex_lock(&pool->lock);
    }
    pthread_mutex_unlock(&pool->lock);
    if (type->end)
        type->end(data);
    return NULL;
}

/* Starts another thread if none is idle and more are allowed. Returns 0, or -errno: there is none at all. */
static int provide_thread(struct mk_thread_pool *pool)
{
    bool wants = pool->busy + pool->queued >= pool->threads && pool->threads < pool->threads_max;
    int err = wants ? mk_thread_start(&pool->ids[pool->threads], pool->type->stack_bytes, run_thread, pool) : 0;
    pool->threads += wants && err == 0;
    return pool->threads ? 0 : err;
}

int mk_thread_pool_add(struct mk_thread_pool *pool, struct mk_message *item)
{
    pthread_mutex_lock(&pool->lock);
    assert(!pool->stopping);
    int err = pool->queued >= pool->queue_max ? -ENOBUFS : provide_thread(pool);
    if (err == 0) {
        item->next = NULL;
        *pool->last = item;
        pool->last = &item->next;
        pool->queued++;
        pthread_cond_signal(&pool->wake);
    }
    pthread_mutex_unlock(&pool->lock);
    return err;
}

void mk_thread_pool_set_limits(struct mk_thread_pool *pool, unsigned threads_max, unsigned queue_max)
{
    assert(threads_max && threads_max <= MK_COUNT_OF(pool->ids) && queue_max);
    pthread_mutex_lock(&pool->lock);
    pool->threads_max = threads_max;
    pool->queue_max = queue_max;
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
}

void mk_thread_pool_close(struct mk_thread_pool *pool)
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

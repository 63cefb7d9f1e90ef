// SPDX-License-Identifier: Apache-2.0
/*
 * Threads for work that blocks or takes long, with limits for the threads and the queue. (System calls for a loop are
 * jobs, mk_job_submit() of <monkey/loop.h>: the server has a pool for them.)
 *
 *     any thread: mk_thread_pool_add() ──► queue ──► run() in a thread of the pool
 *
 * A thread starts when an item finds none idle, and stays until the pool is closed.
 */
#ifndef MONKEY_THREAD_POOL_H
#define MONKEY_THREAD_POOL_H

#include <pthread.h>

#include "../loop.h"

MK_C_BEGIN

struct mk_thread_pool_type {
    const char *thread_name; /* 15 bytes at most */
    size_t stack_bytes;      /* 0: the system's default */
    /* Make and free what a thread works with; both NULL: nothing. */
    void *(*begin)(void);
    void (*end)(void *data);
    /*
     * Does the work of an item, which the pool does not touch afterwards. `data`: of the thread's begin(). `stopping`:
     * the pool is being closed, and the item was still in its queue.
     */
    void (*run)(struct mk_message *item, void *data, bool stopping);
};

enum { MK_THREAD_POOL_THREADS_MAX = 16 };

/* Its members are the library's. */
struct mk_thread_pool {
    const struct mk_thread_pool_type *type;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t wake;
    struct mk_message *first, **last; /* the queue; `fn` of its items is not used */
    unsigned queued, queue_max, busy, threads, threads_max;
    bool stopping;
    pthread_t ids[MK_THREAD_POOL_THREADS_MAX];
};

/*
 * Opens a pool without threads, which starts at most `threads_max` (1 to MK_THREAD_POOL_THREADS_MAX); at most
 * `queue_max` items wait. `type` must stay.
 */
MK_API void mk_thread_pool_open(struct mk_thread_pool *pool, const struct mk_thread_pool_type *type,
                                unsigned threads_max, unsigned queue_max);
/* Runs the items that wait, with `stopping`, and joins the threads. Nothing adds items meanwhile. */
MK_API void mk_thread_pool_close(struct mk_thread_pool *pool);

/* Sets how many items run at once, and how many may wait. Any thread. */
MK_API void mk_thread_pool_set_limits(struct mk_thread_pool *pool, unsigned threads_max, unsigned queue_max);

/*
 * Queues an item. Any thread; never blocks for longer than a lock is held.
 * Returns 0, -ENOBUFS (the queue is full) or -errno of mk_thread_start(): there is no thread, and none can be started.
 */
MK_API int mk_thread_pool_add(struct mk_thread_pool *pool, struct mk_message *item);

MK_C_END

#endif

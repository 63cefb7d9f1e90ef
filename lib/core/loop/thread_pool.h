// SPDX-License-Identifier: Apache-2.0
/*
 * Disk threads: a small pool, shared by all loops of a server, for system calls that may block. A thread is started
 * when a job finds none idle, and stays until the pool is closed.
 */
#ifndef MK_LOOP_THREAD_POOL_H
#define MK_LOOP_THREAD_POOL_H

#include <monkey/loop.h>

#include <pthread.h>

struct mk__thread_pool {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct mk_message *first, **last; /* the queue, linked through the jobs' messages */
    unsigned threads, threads_max, idle, queued;
    bool stopping;
    pthread_t ids[16];
};

/* Initializes the pool, which starts at most `threads_max` (1 to 16) threads. */
void mk__thread_pool_open(struct mk__thread_pool *pool, unsigned threads_max);
/* Finishes the queued jobs, then joins the threads. The loops must still accept messages. */
void mk__thread_pool_close(struct mk__thread_pool *pool);

#endif

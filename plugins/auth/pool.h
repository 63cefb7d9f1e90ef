// SPDX-License-Identifier: Apache-2.0
/*
 * Threads that compute password hashes, so that neither workers nor the threads that read disks wait for them. One pool
 * for the process, with a queue of limited length. Threads start with the first jobs, and may use all CPUs of the
 * process (`Affinity` binds workers only). Any thread may call these functions, except where a function says something
 * else.
 */
#ifndef AUTH_POOL_H
#define AUTH_POOL_H

#include <stdint.h>

#include "hash.h"

enum { POOL_THREADS_MAX = 16 };

struct pool;
struct pool_job;

/* `w` NULL: the pool stops, or the job was to be skipped; the job must end without a hash. */
typedef void (*pool_fn)(struct pool_job *job, struct hash_work *w);

struct pool_job {
    struct pool_job *next;
    pool_fn run; /* in a thread of the pool; the job is not touched afterwards */
};

/* Returns a pool without threads, or NULL. */
struct pool *pool_new(void);
/* Waits for the job of each thread, calls `run` of the jobs in the queue without a work space, and frees the pool. */
void pool_stop(struct pool *p);

/* Sets how many jobs run at once, and how many may wait. */
void pool_set_limits(struct pool *p, unsigned threads, unsigned queue_max);

/*
 * Queues a job. Never blocks for longer than a lock is held.
 * Returns 0, -ENOBUFS (the queue is full) or -EAGAIN (no thread can be started).
 */
int pool_submit(struct pool *p, struct pool_job *job);

/* Returns the number of jobs that have run with a work space. */
uint64_t pool_count(struct pool *p);

#endif

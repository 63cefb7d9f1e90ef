// SPDX-License-Identifier: Apache-2.0
/*
 * The threads of a service that run its tasks. Made by the first task.
 *
 *     worker: task_pool_add ─► QUEUED ─► a thread: RUNNING ─► ENDED, in the worker's list ─► worker: tasks_deliver
 *                                └─ task_pool_remove ─► REMOVED
 *
 * The pool's lock is that of the queue, and of what a thread and a worker both know of a task.
 */
#ifndef DUDA_CORE_TASK_TASK_POOL_H
#define DUDA_CORE_TASK_TASK_POOL_H

#include "crash/watch.h"
#include "service/counts.h"
#include "service/thread.h"
#include "task/task_queue.h"

struct service;
struct task;
struct task_thread;

/* Under the lock. */
enum task_state { TASK_QUEUED, TASK_RUNNING, TASK_ENDED, TASK_REMOVED };

struct task_pool {
    struct service *service;
    struct duda_task_conf conf;
    struct task_counts counts;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t wakes; /* a task is ready, or the service ends */
    pthread_cond_t ended; /* a task or a thread has ended */
    struct task_queue queue;
    unsigned threads, idle;
    bool stopping;
    void (*on_last)(struct service *s);
    struct task_thread *items; /* conf.threads of them */
};

/* Returns the pool of a service, which it makes if there is none; NULL without memory. Any thread. */
struct task_pool *task_pool_get(struct service *s);
/* Frees the pool, if there is one, and its serial queues. Its threads have ended. */
void task_pool_release(struct service *s);

/* Adds a task. Returns 0, -EBUSY (the queue is full), -ESHUTDOWN (the service ends) or -EAGAIN (there is no thread). */
int task_pool_add(struct task_pool *pool, struct task *t);
/* Takes a task back that has not begun. Returns whether it was one, also if it was taken back before. */
bool task_pool_remove(struct task_pool *pool, struct task *t);

/* Returns a new serial queue of the service, or NULL without memory. Any thread. */
struct duda_serial_queue *task_pool_new_serial(struct service *s);
/* Frees it, once its tasks have ended. Any thread. */
void task_pool_free_serial(struct duda_serial_queue *serial);

/* Ends the threads, and waits for them, a second at most. Returns how many still run. */
unsigned task_pool_stop(struct service *s);
/* Returns whether all threads have ended, and joins them then. */
bool task_pool_join(struct service *s);
/* Leaves the threads alone: `fn` is called once all have ended, by the last one or at once. */
void task_pool_detach(struct service *s, void (*fn)(struct service *s));

/* Returns the task that the calling thread runs; NULL: it is none of a pool. */
struct task *task_pool_running(void);

#endif

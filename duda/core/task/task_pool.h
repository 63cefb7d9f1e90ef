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

#include "common/slots.h"
#include "service/counts.h"
#include "service/service.h"
#include "service/thread.h"
#include "task/task_queue.h"

struct dthread;
struct task_thread;
struct task_wait;

/* Under the lock. */
enum task_state { TASK_QUEUED, TASK_RUNNING, TASK_ENDED, TASK_REMOVED };

struct task {
    struct task_item item; /* the node: in the queue, then in tasks.ended */
    struct task_pool *pool;
    struct service_worker *worker; /* NULL: the thread frees the task. Under the lock of the pool */
    enum task_state state;         /* likewise */
    struct dthread *abandoned;     /* likewise: it waits, and its stack is freed with the task; or NULL */
    atomic_bool stopping;
    struct duda_task_kind kind;
    void *data;
    /* of the worker */
    struct mk_list node; /* in tasks.all */
    duda_task_t number;
    uint32_t slot;
    bool is_removed;        /* it has not begun, and does not */
    struct mk_timer timer;  /* of kind.queue_ms */
    struct task_wait *wait; /* NULL: no dthread waits for it */
    bool uses_stack;        /* its data may be on the stack of this dthread */
    struct duda_request *dr;
    struct task *next_of_request, **link_of_request;
};

/* Of a service in a worker. */
struct tasks {
    struct mk_list all;
    struct mk_list ended; /* under the lock of the pool */
    unsigned pending;     /* those that were neither delivered nor removed */
    struct slots slots;
};

FEATURE_SLOT(tasks_of, struct tasks, service_worker, FEATURE_TASKS)

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

/* Of a service. */
struct task_service {
    struct duda_task_conf *conf;      /* of task->init(); or NULL */
    _Atomic(struct task_pool *) pool; /* NULL: it has had no task. Set once */
};

FEATURE_SLOT(task_service_of, struct task_service, service, FEATURE_TASK_POOL)

/* Returns the pool of a service, which it makes if there is none; NULL without memory. Any thread. */
struct task_pool *task_pool_get(struct service *s);
/* Adds a task. Returns 0, -EBUSY (the queue is full), -ESHUTDOWN (the service ends) or -EAGAIN (there is no thread). */
int task_pool_add(struct task_pool *pool, struct task *t);
/* Takes a task back that has not begun. Returns whether it was one, also if it was taken back before. */
bool task_pool_remove(struct task_pool *pool, struct task *t);

/* Returns a new serial queue of the service, or NULL without memory. Any thread. */
struct duda_serial_queue *task_pool_new_serial(struct service *s);
/* Frees it, once its tasks have ended. Any thread. */
void task_pool_free_serial(struct duda_serial_queue *serial);

/* Calls `drop` of a task that is in no list, and frees it. Any thread. */
void task_drop(struct task *t);

/* Hooks of features.c: the pool is freed, if there is one, with its serial queues, when its threads have ended. */
void task_pool_stop(struct service *s, struct mk_buf *left);
bool task_pool_join(struct service *s);
void task_pool_detach(struct service *s, void (*fn)(struct service *s));
void task_pool_release(struct service *s);

/* Returns the task that the calling thread runs; NULL: it is none of a pool. */
struct task *task_pool_running(void);

#endif

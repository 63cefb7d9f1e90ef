// SPDX-License-Identifier: Apache-2.0
/*
 * The order in which tasks begin. Pure; the pool has the lock.
 *
 *     task_queue_add ─► ready ─► task_queue_take ─► it runs ─► task_queue_finish
 *                  └─► its serial queue, until the one before has finished ─► ready
 */
#ifndef DUDA_CORE_TASK_TASK_QUEUE_H
#define DUDA_CORE_TASK_TASK_QUEUE_H

#include <duda/task.h>
#include <monkey/base/list.h>

/* A task in the queue, or one that runs. */
struct task_item {
    struct mk_list node;              /* in `ready` or in `waiting` of the serial queue */
    struct duda_serial_queue *serial; /* NULL: none */
    bool is_ready;                    /* in `ready` */
};

struct duda_serial_queue {
    struct mk_list node; /* in `serials` of the queue */
    struct mk_list waiting;
    struct task_queue *queue;
    bool is_busy;  /* one of its tasks is ready or runs */
    bool is_freed; /* serial_queue_free() was called */
};

struct task_queue {
    struct mk_list ready, serials;
    unsigned n, n_ready; /* tasks that have not begun; those of them that may */
    unsigned n_running;
    unsigned max; /* of `n` and `n_running` together: so a thread that is about to take a task makes no difference */
};

void task_queue_init(struct task_queue *q, unsigned max);
/* Frees the serial queues that are left. The queue is empty. */
void task_queue_release(struct task_queue *q);

/* Adds a task, whose `serial` is set. Returns 0 or -EBUSY: the queue is full. */
int task_queue_add(struct task_queue *q, struct task_item *item);
/* Takes the next task that may begin; NULL: there is none. */
struct task_item *task_queue_take(struct task_queue *q);
/* A task that was taken has ended: the next one of its serial queue may begin. */
void task_queue_finish(struct task_queue *q, struct task_item *item);
/* Takes out a task that has not begun. */
void task_queue_remove(struct task_queue *q, struct task_item *item);

/* Returns a new serial queue, or NULL without memory. */
struct duda_serial_queue *task_queue_new_serial(struct task_queue *q);
/* Frees a serial queue, once it has no task any more. */
void task_queue_free_serial(struct duda_serial_queue *serial);

#endif

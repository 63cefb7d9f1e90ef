// SPDX-License-Identifier: Apache-2.0
/*
 * Tasks of services in their workers (<duda/task.h>). A task belongs to the worker that has started it: it holds the
 * service there until it was delivered, removed or, at a stop of the server, given to its thread.
 */
#ifndef DUDA_CORE_TASK_TASK_H
#define DUDA_CORE_TASK_TASK_H

#include "task/task_pool.h"

struct dthread;
struct duda_request;

/* A dthread that waits for a task; on its stack. */
struct task_wait {
    struct dthread *dthread;
    struct task *task; /* NULL: it was left to its thread */
    bool is_over;      /* the task was delivered */
};

/* Runs `fn(data)` and waits for its end, as task->run(). In the dthread that runs and may wait. */
int task_run(struct dthread *d, const struct duda_task_kind *kind, void *data, uint32_t timeout_ms);
/* The same for task->await(). */
int task_await(struct dthread *d, const struct duda_task_kind *kind, void *data, uint32_t timeout_ms);
/* Starts a task. Returns its number, or 0 with -errno in *ret_err. */
duda_task_t task_start(struct service_worker *w, struct duda_request *dr, const struct duda_task_kind *kind, void *data,
                       int *ret_err);
/* Returns 0, -EBUSY (it runs) or -ESRCH. */
int task_cancel(struct service_worker *w, duda_task_t number);

/* ── hooks of features.c ── */

int tasks_init(struct service_worker *w);
/* A request has ended, which has tasks. */
void task_leave_request(struct duda_request *dr);
/* Gives the worker the tasks that have ended. */
void tasks_deliver(struct service_worker *w);
/* Returns whether tasks hold the worker. */
bool tasks_are_pending(const struct service_worker *w);
/* The service ends in the worker: removes the tasks that have not begun. */
void tasks_stop(struct service_worker *w);
/* The thread ends: waits for the tasks, a second at most, and leaves those that still run to their threads. */
void tasks_wait(struct service_worker *w);
/* Frees what the worker has for tasks, of which it has none any more. */
void tasks_release(struct service_worker *w);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * Starts tasks in workers, and delivers what has ended (task.h).
 */
#include "task/task.h"

#include "common/api_error.h"
#include "common/cond.h"
#include "common/current.h"
#include "common/heap.h"
#include "dthread/dthread.h"
#include "request/request.h"

#include <errno.h>
#include <time.h>

enum { TASKS_MAX = 1 << 20, WAIT_MS = 1000 };

/* ── life ── */

int tasks_init(struct service_worker *w)
{
    mk_list_init(&tasks_of(w)->all);
    mk_list_init(&tasks_of(w)->ended);
    return 0;
}

static void leave_request(struct task *t)
{
    if (t->link_of_request) {
        *t->link_of_request = t->next_of_request;
        if (t->next_of_request)
            t->next_of_request->link_of_request = t->link_of_request;
    }
    t->dr = NULL;
    t->next_of_request = NULL;
    t->link_of_request = NULL;
}

/* Takes a task out of all that the worker has; what is left is `data`. */
static void detach_task(struct task *t)
{
    assert(t->worker);
    leave_request(t);
    mk_timer_cancel(&t->timer);
    mk_list_del(&t->node);
    slots_remove(&tasks_of(t->worker)->slots, t->slot);
}

static void free_task(struct task *t)
{
    heap_free(t, sizeof(*t));
}

static void drop_data(const struct duda_task_kind *kind, void *data)
{
    if (kind->drop)
        kind->drop(data);
}

void task_drop(struct task *t)
{
    drop_data(&t->kind, t->data);
    if (t->abandoned)
        dthread_free_abandoned(t->abandoned);
    free_task(t);
}

/* Takes a task back that has not begun. Returns false if it has. */
static bool remove_task(struct task *t)
{
    if (t->is_removed)
        return true;
    if (!task_pool_remove(t->pool, t))
        return false;
    assert(tasks_of(t->worker)->pending > 0);
    t->is_removed = true;
    tasks_of(t->worker)->pending--;
    return true;
}

/* Calls `done`, or `drop` if it cannot be called, and frees the task. In a call into the service. */
static void finish_task(struct task *t, int result)
{
    assert(!t->wait);
    struct service_worker *w = t->worker;
    struct duda_request *dr = t->dr;
    struct duda_task_kind kind = t->kind;
    void *data = t->data;
    detach_task(t);
    free_task(t);
    if (w->ended || !kind.done) {
        drop_data(&kind, data);
        return;
    }
    atomic_store_explicit(&w->watch.function, (uintptr_t)kind.done, memory_order_relaxed);
    struct duda_request *outer = current.request;
    current.request = dr;
    kind.done(dr, result, data);
    current.request = outer;
}

/* ── starting ── */

static void on_time(struct mk_timer *timer)
{
    struct task *t = MK_CONTAINER_OF(timer, struct task, timer);
    struct service_worker *w = t->worker;
    if (!remove_task(t))
        return;
    struct current outer = service_worker_enter(w);
    finish_task(t, -ETIMEDOUT);
    service_worker_leave(w, outer);
}

static struct task *new_task(struct service_worker *w, const struct duda_task_kind *kind, void *data, int *ret_err)
{
    struct tasks *all = tasks_of(w);
    bool has_end = dthread_threads_enter(w) == 0; /* the end of the thread waits for tasks, too */
    struct task_pool *pool = has_end ? task_pool_get(w->service) : NULL;
    *ret_err = pool ? slots_reserve(&all->slots, TASKS_MAX) : -ENOMEM;
    if (*ret_err == 0 && kind->serial && kind->serial->queue != &pool->queue) {
        api_error_log(w, "task", "the serial queue belongs to another service");
        *ret_err = -EINVAL;
    }
    struct task *t = *ret_err == 0 ? heap_zalloc(sizeof(*t)) : NULL;
    if (!t) {
        *ret_err = *ret_err ? *ret_err : -ENOMEM;
        return NULL;
    }
    *t = (struct task){.item = {.serial = kind->serial}, .pool = pool, .worker = w, .kind = *kind, .data = data};
    mk_list_init(&t->item.node);
    mk_timer_init(&t->timer, on_time);
    t->number = slots_add(&all->slots, t, &t->slot);
    mk_list_add(&all->all, &t->node);
    return t;
}

/* Hands a task to the pool, which may run it at once. Returns 0 or -errno: it was freed. */
static int submit_task(struct task *t)
{
    struct service_worker *w = t->worker;
    struct task_counts *counts = &t->pool->counts;
    mk_counter_add(counts->queued, w->worker, 1);
    int err = task_pool_add(t->pool, t);
    if (err == 0) {
        tasks_of(w)->pending++;
        return 0;
    }
    mk_counter_add(counts->queued, w->worker, -1);
    mk_counter_add(counts->refused, w->worker, err == -EBUSY);
    detach_task(t);
    free_task(t);
    return err == -ESHUTDOWN ? -ECANCELED : err;
}

static void attach_to_request(struct task *t, struct duda_request *dr)
{
    assert(!t->dr && t->worker == dr->worker);
    t->dr = dr;
    t->next_of_request = dr->tasks;
    t->link_of_request = &dr->tasks;
    if (dr->tasks)
        dr->tasks->link_of_request = &t->next_of_request;
    dr->tasks = t;
    request_use(dr, FEATURE_TASKS);
}

duda_task_t task_start(struct service_worker *w, struct duda_request *dr, const struct duda_task_kind *kind, void *data,
                       int *ret_err)
{
    struct task *t = new_task(w, kind, data, ret_err);
    *ret_err = t ? submit_task(t) : *ret_err;
    if (*ret_err < 0)
        return 0;
    if (dr)
        attach_to_request(t, dr);
    if (kind->queue_ms)
        mk_timer_arm(w->loop, &t->timer, kind->queue_ms);
    return t->number;
}

int task_cancel(struct service_worker *w, duda_task_t number)
{
    struct task *t = slots_find(&tasks_of(w)->slots, number);
    if (!t || t->wait) /* a wait of a dthread has no number for the service */
        return -ESRCH;
    if (!remove_task(t)) {
        atomic_store(&t->stopping, true);
        return -EBUSY;
    }
    t->kind.done = NULL;
    finish_task(t, -ECANCELED);
    return 0;
}

void task_leave_request(struct duda_request *dr)
{
    while (dr->tasks)
        leave_request(dr->tasks);
}

/* ── waits of dthreads ── */

/* Begins a task for which `wait->dthread` waits. Returns 0 or -errno. */
static int begin_wait(struct task_wait *wait, const struct duda_task_kind *kind, void *data, bool uses_stack)
{
    int err = -ECANCELED;
    struct service_worker *w = wait->dthread->worker;
    struct task *t = w->ended ? NULL : new_task(w, kind, data, &err);
    if (!t)
        return err;
    t->kind.done = NULL;
    t->wait = wait;
    t->uses_stack = uses_stack;
    wait->task = t;
    return submit_task(t);
}

/* Returns the error of an interrupt that came when the dthread was ready already, or `result`. */
static int take_interrupt(struct dthread *d, int result)
{
    if (result < 0 || !d->interrupt)
        return result;
    result = d->interrupt;
    d->interrupt = 0;
    return result;
}

static void end_wait(struct task_wait *wait)
{
    assert(wait->task && wait->task->wait == wait);
    detach_task(wait->task);
    free_task(wait->task);
}

int task_run(struct dthread *d, const struct duda_task_kind *kind, void *data, uint32_t timeout_ms)
{
    struct task_wait wait = {.dthread = d};
    int result = begin_wait(&wait, kind, data, true);
    if (result < 0)
        return result;
    d->is_held = true;
    while (!wait.is_over) {
        int err = dthread_suspend(d, timeout_ms);
        timeout_ms = DUDA_FOREVER;
        if (err < 0 && err != -ETIMEDOUT)
            result = err;
        if (result < 0)
            atomic_store(&wait.task->stopping, true);
        if (err < 0 && !wait.is_over && remove_task(wait.task)) {
            result = err;
            break;
        }
    }
    d->is_held = false;
    end_wait(&wait);
    return take_interrupt(d, result);
}

/* The dthread waits no longer. Returns `result`, or the error of an interrupt. */
static int end_await(struct task_wait *wait, int result)
{
    struct task *t = wait->task;
    if (!t)
        return result; /* its thread drops the data */
    if (!wait->is_over && !remove_task(t)) {
        atomic_store(&t->stopping, true);
        t->wait = NULL;
        return result;
    }
    struct duda_task_kind kind = t->kind;
    void *data = t->data;
    result = take_interrupt(wait->dthread, result);
    end_wait(wait);
    if (result < 0)
        drop_data(&kind, data);
    return result;
}

int task_await(struct dthread *d, const struct duda_task_kind *kind, void *data, uint32_t timeout_ms)
{
    struct task_wait wait = {.dthread = d};
    int err = begin_wait(&wait, kind, data, false);
    if (err == 0)
        return end_await(&wait, dthread_suspend(d, timeout_ms));
    drop_data(kind, data);
    return err;
}

/* ── the end of tasks ── */

static void deliver_task(struct task *t)
{
    struct task_wait *wait = t->wait;
    assert(t->state == TASK_ENDED && tasks_of(t->worker)->pending > 0);
    tasks_of(t->worker)->pending--;
    if (!wait) {
        finish_task(t, 0);
        return;
    }
    wait->is_over = true;
    if (wait->dthread->state == STATE_WAITING)
        dthread_wake(wait->dthread, 0);
}

void tasks_deliver(struct service_worker *w)
{
    struct task_pool *pool = atomic_load(&task_service_of(w->service)->pool);
    struct mk_list ended;
    if (!pool)
        return;
    mk_list_init(&ended);
    pthread_mutex_lock(&pool->lock);
    mk_list_join(&ended, &tasks_of(w)->ended);
    pthread_mutex_unlock(&pool->lock);
    while (!mk_list_empty(&ended)) {
        struct task *t = MK_LIST_FIRST(&ended, struct task, item.node);
        mk_list_del(&t->item.node);
        deliver_task(t);
    }
}

bool tasks_are_pending(const struct service_worker *w)
{
    return tasks_of(w)->pending;
}

/* ── the end of the service in the worker ── */

/* Takes all tasks back that have not begun. Those without a dthread are moved to `ret`. */
static void remove_tasks(struct tasks *all, struct mk_list *ret)
{
    MK_LIST_EACH_ITEM(&all->all, struct task, node, t) {
        if (!remove_task(t)) {
            atomic_store(&t->stopping, true);
        } else if (!t->wait) {
            mk_list_del(&t->node);
            mk_list_add(ret, &t->node);
        } else if (t->wait->dthread->state == STATE_WAITING) {
            dthread_wake(t->wait->dthread, -ECANCELED);
        }
    }
}

void tasks_stop(struct service_worker *w)
{
    struct mk_list removed;
    mk_list_init(&removed);
    w->calls++; /* what is called does not end the worker */
    struct current outer = current_enter(w->service, w);
    remove_tasks(tasks_of(w), &removed);
    while (!mk_list_empty(&removed))
        finish_task(MK_LIST_FIRST(&removed, struct task, node), -ECANCELED);
    current_leave(outer);
    w->calls--;
}

static bool has_running_task(const struct tasks *all)
{
    MK_LIST_EACH_ITEM(&all->all, const struct task, node, t)
        if (t->state == TASK_RUNNING)
            return true;
    return false;
}

/* Leaves a task to its thread, which may free it once the lock is released. With the lock. */
static void lose_task(struct task *t)
{
    struct tasks *all = tasks_of(t->worker);
    detach_task(t);
    assert(all->pending > 0);
    all->pending--;
    t->worker->has_lost_task = true;
    if (t->wait)
        t->wait->task = NULL;
    if (t->wait && t->uses_stack) {
        t->abandoned = t->wait->dthread;
        dthread_abandon(t->abandoned);
    }
    t->worker = NULL;
}

void tasks_wait(struct service_worker *w)
{
    struct task_pool *pool = atomic_load(&task_service_of(w->service)->pool);
    tasks_stop(w);
    if (!pool)
        return;
    struct timespec until = cond_time_in(WAIT_MS);
    pthread_mutex_lock(&pool->lock);
    while (has_running_task(tasks_of(w)) && pthread_cond_timedwait(&pool->ended, &pool->lock, &until) == 0)
        ;
    MK_LIST_EACH_ITEM(&tasks_of(w)->all, struct task, node, task) {
        if (task->state == TASK_RUNNING)
            lose_task(task);
    }
    pthread_mutex_unlock(&pool->lock);
    tasks_deliver(w);
}

void tasks_release(struct service_worker *w)
{
    assert(tasks_of(w)->pending == 0 && mk_list_empty(&tasks_of(w)->all));
    slots_release(&tasks_of(w)->slots);
}

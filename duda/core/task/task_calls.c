// SPDX-License-Identifier: Apache-2.0
/*
 * The object `task`: checks the arguments and the caller; task.c and task_pool.c do the work.
 */
#include "common/api_error.h"
#include "common/current.h"
#include "dthread/dthread.h"
#include "log/message.h"
#include "objects.h"
#include "request/request.h"
#include "service/thread.h"
#include "task/task.h"
#include "task/task_pool.h"

#include <errno.h>

/* ── duda_main() ── */

static int set_conf(const struct duda_task_conf *conf)
{
    if (!phase_check(PHASE_MAIN, "task->init()"))
        return -EPERM;
    struct service *s = current.service;
    bool is_valid = conf && conf->threads <= DUDA_TASK_THREADS_MAX && conf->queue <= DUDA_TASK_QUEUE_MAX;
    int err = !is_valid ? -EINVAL : task_service_of(s)->conf || task_service_of(s)->pool ? -EALREADY : 0;
    if (err == 0 && !(task_service_of(s)->conf = mk_arena_alloc(&s->arena, sizeof(*conf))))
        err = -ENOMEM;
    if (err == 0)
        *task_service_of(s)->conf = *conf;
    else if (err == -EALREADY)
        message_log(MK_LOG_ERROR, "task->init(): it comes after another call, or after the first serial queue, which "
                                  "packages make, too: call it first");
    else
        message_log(MK_LOG_ERROR, "task->init(): %s", strerror(-err));
    return err;
}

/* ── waits ── */

/* Returns the dthread that waits, or NULL with an error in *ret_err. */
static struct dthread *begin_await(const char *call, const struct duda_task_kind *kind, uint32_t timeout_ms,
                                   int *ret_err)
{
    struct dthread *d = dthread_begin_wait(call, ret_err);
    if (d && !kind->fn)
        *ret_err = api_error_report(current.worker, call, -EINVAL);
    else if (d && !timeout_ms)
        *ret_err = -EAGAIN;
    return *ret_err ? NULL : d;
}

static int run_task(struct duda_serial_queue *serial, duda_call_fn fn, void *data, uint32_t timeout_ms)
{
    struct duda_task_kind kind = {.fn = fn, .serial = serial};
    int err;
    struct dthread *d = begin_await("task->run()", &kind, timeout_ms, &err);
    return d ? task_run(d, &kind, data, timeout_ms) : err;
}

static int await_task(const struct duda_task_kind *kind, void *data, uint32_t timeout_ms)
{
    static const char call[] = "task->await()";
    int err;
    if (!kind)
        return api_error_report(current.worker, call, -EINVAL);
    struct dthread *d = begin_await(call, kind, timeout_ms, &err);
    if (d)
        return task_await(d, kind, data, timeout_ms);
    if (kind->drop)
        kind->drop(data);
    return err;
}

/* ── callbacks ── */

static int check_start(const duda_request_t *dr, const struct duda_task_kind *kind)
{
    static const char call[] = "task->start()";
    if (phase_now() == PHASE_LEAVE)
        return -ECANCELED;
    if (!phase_check(PHASE_WORKER, call) || (dr && request_check(dr, call) < 0))
        return -EPERM;
    return kind && kind->fn ? 0 : api_error_report(current.worker, call, -EINVAL);
}

static duda_task_t start_task(duda_request_t *dr, const struct duda_task_kind *kind, void *data)
{
    int err = check_start(dr, kind);
    duda_task_t number = err == 0 ? task_start(current.worker, dr, kind, data, &err) : 0;
    if (!number)
        errno = -err;
    return number;
}

static int cancel_task(duda_task_t number)
{
    return current.worker ? task_cancel(current.worker, number) : -ESRCH;
}

/* ── serial queues ── */

static struct duda_serial_queue *make_serial(void)
{
    if (!phase_check(PHASE_ANY, "task->serial_queue()"))
        return NULL;
    return task_pool_new_serial(current.service);
}

static void free_serial(struct duda_serial_queue *serial)
{
    if (serial)
        task_pool_free_serial(serial);
}

static bool is_stopping(void)
{
    struct task *t = task_pool_running();
    if (t && atomic_load(&t->stopping))
        return true;
    return current.service && atomic_load(&threads_of(current.service)->stopping);
}

const struct duda_api_task object_task = {
    .init = set_conf,
    .run = run_task,
    .await = await_task,
    .start = start_task,
    .cancel = cancel_task,
    .serial_queue = make_serial,
    .serial_queue_free = free_serial,
    .stopping = is_stopping,
};

// SPDX-License-Identifier: Apache-2.0
/*
 * The object `task`: calls that block, on threads of the service's own pool (docs/reference/duda/task.md).
 *
 *     static void hash(void *data) { ... }  // on a thread of the pool: may block, may compute for long
 *
 *     static void answer(duda_request_t *dr)  // in a dthread: router->in_dthread(router->get("/", answer))
 *     {
 *         struct job job = {...}; // on the stack of the dthread
 *         if (task->run(NULL, hash, &job, DUDA_FOREVER) < 0)
 *             return; // the client has left, or the service ends: `dr` must not be used
 *         response->printf(dr, "%s\n", job.result);
 *         response->end(dr, NULL);
 *     }
 *
 * Each service has a pool, so that none waits for the tasks of another. A thread starts when a task finds none idle,
 * ends when it has had no task for some time, and has 1 MB of stack. Before the first task there is nothing. Tasks
 * begin in the order in which they were started; one of a serial queue waits for the one before it.
 *
 * A function on a thread of the pool may call what says "any thread", and has values of the global keys
 * (global->init()). All signals are blocked. If it crashes, the log has its name and that of the service. One that runs
 * for long (`slow_ms`) is logged once, and again at its end.
 *
 * Packages call these functions in threads of the service, to which their tasks belong.
 *
 * When the service ends in a worker (a reload with a new version, a stop), its tasks of that worker that have not begun
 * are dropped, and those that run are waited for. A reload does not block the worker for that; a stop of the server
 * waits for a second, after ShutdownTimeout. What still runs then stays in memory with all it uses, which is logged:
 * the code and `data`, and the stack of a dthread in run(). worker_stop() of packages is called when no task of the
 * worker runs, or not at all.
 *
 * Mistakes are logged.
 */
#ifndef DUDA_TASK_H
#define DUDA_TASK_H

#include "event.h"

/* A task's number; 0 is none. A number is not used again. */
typedef uint64_t duda_task_t;

/* A queue of tasks that run one after the other, in the order in which they were started, in whatever worker; each on
 * any thread. For what is used by one thread at a time, such as a connection to a database. */
struct duda_serial_queue;

enum {
    DUDA_TASK_THREADS_MAX = 64,
    DUDA_TASK_QUEUE_MAX = 65536,
};

/* Fields that are 0 have the value in brackets. */
struct duda_task_conf {
    uint32_t threads; /* of the pool at most, up to DUDA_TASK_THREADS_MAX [8] */
    uint32_t queue;   /* further tasks, which wait for a thread, at most, up to DUDA_TASK_QUEUE_MAX [4096] */
    uint32_t idle_ms; /* a thread ends after this time without a task [10000] */
    uint32_t slow_ms; /* a task that runs for longer is logged [30000] */
};

/*
 * The end of a task, in its worker. `dr` is that of start(), or NULL: it has ended, or there was none. `result`: 0,
 * `fn` has run; -ETIMEDOUT, it was not called. `data` is the caller's again.
 */
typedef void (*duda_task_fn)(duda_request_t *dr, int result, void *data);

/* A kind of task. Fields that are not set have their zero. Copied by the calls. */
struct duda_task_kind {
    duda_call_fn fn;   /* on a thread of the pool */
    duda_task_fn done; /* of start(); NULL: `drop` is called instead */
    duda_call_fn drop; /* frees `data`, if `done` is not called; NULL: there is nothing to free. In the worker,
                        * or on a thread of the pool if the service has ended in the worker */
    struct duda_serial_queue *serial; /* NULL: none */
    uint32_t queue_ms;                /* of start(): it waits that long for a thread at most; 0: no limit */
};

struct duda_api_task {
    /* Sets the limits of the service's pool; one call in duda_main(), which copies `conf`. Without it all defaults.
     * Returns 0, -EINVAL (a field is too large), -EALREADY (a second call, or it comes after the first serial queue, of
     * the service or of a package: sqlite->open()), -ENOMEM or -EPERM (not in duda_main()); errors are logged. */
    int (*init)(const struct duda_task_conf *conf);

    /* ── waits of dthreads (dthread.h): DUDA_FOREVER, and their errors ── */

    /*
     * Runs `fn(data)` on a thread, and waits for its end. When run() has returned, nothing uses `data` any more, which
     * so may be on the stack. `timeout_ms` is for the begin: once `fn` runs, run() waits for its end. Returns
     *
     *     0             `fn` has returned
     *     -ETIMEDOUT    no thread was free in time: `fn` was not called
     *     -EAGAIN       the same for `timeout_ms` 0, or no thread can be started
     *     -EBUSY        the queue is full: `fn` was not called
     *     -ENOMEM, -EPERM, -EINVAL: `fn` was not called
     *     -ECONNABORTED   the request of the dthread has ended
     *     -ECANCELED    dthread->cancel(); or the service ends, and `fn` had not begun
     *
     * With the last two `fn` was not called if it had not begun then. Otherwise stopping() has notified it, and it has
     * returned: `data` shows which. Dthreads.
     */
    int (*run)(struct duda_serial_queue *serial, duda_call_fn fn, void *data, uint32_t timeout_ms);
    /*
     * Runs kind->fn(data) on a thread, and waits for its end, for `timeout_ms` at most. `data` is on the heap: with the
     * result 0 it is the caller's again. With all others it is the task's, which has `drop` called once `fn` does not
     * run, also before await() returns. `done` and `queue_ms` mean nothing. Returns 0, or an error as run().
     * Dthreads.
     */
    int (*await)(const struct duda_task_kind *kind, void *data, uint32_t timeout_ms);

    /* ── callbacks ── */

    /*
     * Has kind->fn(data) run on a thread, and then kind->done called in this worker. `dr` may be NULL; if not, the
     * handler leaves it without a response, which `done` sends. `done` is not called if the service ends in the worker
     * before: then `drop` is.
     * Returns its number, or 0 with errno: EBUSY (the queue is full), EAGAIN (no thread can be started), EINVAL,
     * ENOMEM, EPERM, or ECANCELED (the service ends in this worker); `data` stays the caller's then. Worker.
     */
    duda_task_t (*start)(duda_request_t *dr, const struct duda_task_kind *kind, void *data);
    /*
     * Ends a task of start() that has not begun: calls `drop`, and not `done`. Returns 0; -EBUSY: it runs, stopping()
     * is true for it from now on, and its `done` will be called; or -ESRCH: it has ended. Of this worker. Worker.
     */
    int (*cancel)(duda_task_t number);

    /* ── serial queues ── */

    /* Returns a new serial queue, or NULL without memory. duda_main(), service_start() of packages, workers, threads.
     */
    struct duda_serial_queue *(*serial_queue)(void);
    /* Frees a serial queue, to which no task is added any more; those that it has still run. Those that are left are
     * freed with the service. NULL: nothing. Where serial_queue() may be called; also in duda_exit(), service_stop()
     * and worker_stop(). */
    void (*serial_queue_free)(struct duda_serial_queue *serial);

    /* ── on a thread of the pool ── */

    /* Returns whether the function should return soon: its waiter's time is over, it was cancelled, or the service
     * ends. In other threads: as worker->stopping(). Any thread. */
    bool (*stopping)(void);
};

DUDA_OBJECT(struct duda_api_task, task)

#endif

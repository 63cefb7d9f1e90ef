// SPDX-License-Identifier: Apache-2.0
/*
 * Coroutines of services (<duda/dthread.h>).
 *
 *     dthread_new ─► NEW ─► dthread_start ─► READY ─► RUNNING ─► fn returns: freed by what runs next
 *                     │                        ▲         │
 *                     │            dthread_wake └─ WAITING ┘ dthread_suspend
 *                     └─ dthread_resume ─► RUNNING ─► SUSPENDED (old API: dthread_yield, dthread_resume)
 *
 * Those that are ready run at the end of a turn, one after the other, each as a call into the service for the watchdog.
 * All functions: in the worker's thread.
 */
#ifndef DUDA_CORE_DTHREAD_DTHREAD_H
#define DUDA_CORE_DTHREAD_DTHREAD_H

#include "common/slots.h"
#include "dthread/context.h"
#include "dthread/stack.h"
#include "service/service.h"

#include <duda/dthread.h>
#include <monkey/loop.h>

#include <stdatomic.h>

struct dthread;
struct dthread_thread;
struct duda_request;
struct service_worker;

enum dthread_state { STATE_NEW, STATE_READY, STATE_RUNNING, STATE_WAITING, STATE_SUSPENDED };

/* A place in a list of dthreads that wait: for a channel, or for the end of another one. On the stack of its dthread.
 */
struct waiter {
    struct mk_list node;
    struct dthread *dthread;
    unsigned index; /* of the channel, in select(): the result when it is woken */
    void *value;    /* to send, or received */
    bool is_closed; /* the channel was closed */
};

/* The function that a dthread runs: one of three. */
struct dthread_entry {
    duda_call_fn call;
    duda_event_fn event;
    duda_request_fn handler; /* of a route; it is not called if the request has ended before */
    void *data;
};

struct dthread {
    struct mk_list node;  /* in dthreads.all */
    struct mk_list queue; /* in dthreads.ready or .later */
    struct service_worker *worker;
    struct stack *stack;
    struct context context;
    duda_dthread_t number;
    uint32_t slot;
    enum dthread_state state;
    struct dthread_entry entry;
    struct duda_request *dr; /* it runs for a request that has not ended; or NULL */
    struct dthread *next_of_request, **link_of_request;
    struct mk_timer timer;
    int fd; /* it waits for; -1: none */
    struct waiter *waiters;
    unsigned n_waiters;
    struct mk_list joiners;
    int result;         /* of the wait */
    int interrupt;      /* an error that the next wait returns; 0: none */
    unsigned cancelled; /* waits that have failed because the service ends */
    bool begun;
    bool has_passed_on;         /* router->next(): the response is not its own any more */
    bool woken, waits_for_wake; /* wake() was called before it has waited; it waits for that */
    bool is_held;               /* a task uses its stack: its wait is not ended */
    atomic_bool *is_running;    /* set to false at its end; or NULL */
    bool dropped;               /* it does not continue, but leaves its stack */
    duda_dthread_t resumer;     /* old API: the one that has resumed it first; 0: a callback */
};

/* Of a service in a worker. */
struct dthreads {
    struct mk_list all, ready, later; /* later: ready in the next turn */
    struct mk_task task;
    struct service_worker *worker;
    struct dthread *running; /* NULL: none; its stack is the thread's own */
    struct dthread *dead;    /* has ended, and is freed by what runs next */
    unsigned depth;          /* of calls into the service when `running` was run */
    struct context main;
    struct stack_pool stacks;
    struct slots slots;
    struct mk_list channels;
    struct mk_list in_thread;      /* in the list of the thread */
    struct dthread_thread *thread; /* NULL: it has had no dthread */
    bool runs;                     /* the task runs them */
};

FEATURE_SLOT(dthreads_of, struct dthreads, service_worker, FEATURE_DTHREADS)

/* ── hooks of features.c ── */

int dthread_init(struct service_worker *w);
/* The service ends in the worker: no timer or descriptor wakes a dthread any more. */
void dthread_stop(struct service_worker *w);
/* Runs those that are ready, and has the waits of the others fail, once. On the thread's own stack. */
void dthread_report_end(struct service_worker *w);
/* Runs all to their ends and frees what there is. On the thread's own stack, after dthread_stop(). */
void dthread_cancel_all(struct service_worker *w);

/* A request has ended, which has dthreads. */
void dthread_leave_request(struct duda_request *dr);
/* Appends the dthread that runs, and whether it was its stack that had no room. */
void dthread_describe_crash(struct line *l, uintptr_t address);
/* Returns the request of the dthread that runs, or that for which the worker has called the service; or NULL. */
struct mk_request *dthread_find_crash_request(void);

/* ── dthreads ── */

/* Makes a dthread. Returns NULL with -errno in *ret_err: -EAGAIN for stack_limit(). */
struct dthread *dthread_new(struct service_worker *w, struct dthread_entry entry, int *ret_err);
/* Returns the address of the function that it runs. */
static inline uintptr_t dthread_get_function(const struct dthread *d)
{
    const struct dthread_entry *e = &d->entry;
    return e->call ? (uintptr_t)e->call : e->event ? (uintptr_t)e->event : (uintptr_t)e->handler;
}
/* Attaches a new dthread to a request. */
void dthread_attach(struct dthread *d, struct duda_request *dr);
/* The request continues without the dthread that runs, if one does. */
void dthread_pass_on(struct service_worker *w);
/* Has a new dthread run at the end of this turn. */
void dthread_start(struct dthread *d);

/* Returns the dthread with a number, or NULL. */
struct dthread *dthread_find(const struct service_worker *w, duda_dthread_t number);
/* Returns whether the one that runs may wait: its own code runs, not a function that the framework has called. */
bool dthread_may_wait(const struct service_worker *w);

/* Waits, in the dthread that runs. `timeout_ms` is not 0. Returns the result of dthread_wake(), or -ETIMEDOUT. */
int dthread_suspend(struct dthread *d, uint32_t timeout_ms);
/* The same until one of `n` waiters, which are in lists, is woken. */
int dthread_suspend_for(struct dthread *d, struct waiter *waiters, unsigned n, uint32_t timeout_ms);
/* The same until a descriptor is ready. Returns its mode, too, or -errno. */
int dthread_suspend_for_fd(struct dthread *d, int fd, int mode, uint32_t timeout_ms);
/* The same until the next turn. */
int dthread_suspend_turn(struct dthread *d);
/* Ends the wait of a dthread, with a result. */
void dthread_wake(struct dthread *d, int result);
/* Wakes it with an error, or has its next wait return it. */
void dthread_interrupt(struct dthread *d, int err);

/*
 * Begins a wait, for the log `call` ("dthread->sleep()"). Returns the dthread that runs and may wait; or NULL with an
 * error in *ret_err: it is none, it was cancelled, or its request has ended.
 */
struct dthread *dthread_begin_wait(const char *call, int *ret_err);

/* Takes a dthread out of all lists of its worker for good: another thread uses its stack. */
void dthread_abandon(struct dthread *d);
/* Frees it, once the other thread does not use its stack any more. Any thread. */
void dthread_free_abandoned(struct dthread *d);

/* ── channel.c ── */

/* Frees all channels of the worker. */
void channel_free_all(struct service_worker *w);

/*
 * ── dthread_threads.c ── Stacks must run in the thread in which they have begun, because compilers keep addresses of
 * thread-local variables (errno) in registers; the plugin's hook worker_stop is called in another thread if that ends.
 */

/* Has the end of this thread end the dthreads of `w`, and wait for its tasks. Returns 0 or -ENOMEM. */
int dthread_threads_enter(struct service_worker *w);
/* They have ended. Any thread. */
void dthread_threads_leave(struct service_worker *w);

/* ── dthread_calls.c: handlers of routes, and the waits of packages (<duda/package.h>) ── */

struct duda_package_wait;

/* Has a new dthread call the handler of a request. Returns false, which is logged, if it cannot. */
bool dthread_call_handler(struct duda_request *dr, duda_request_fn handler);

int dthread_begin_package_wait(struct duda_package_wait *wait, const char *call);
int dthread_wait_for_package(struct duda_package_wait *wait, uint32_t timeout_ms);
void dthread_wake_by_package(struct duda_package_wait *wait, int result);

/* ── the original API ── */

/* Runs a dthread that is NEW or SUSPENDED at once, by a callback or another one, which is SUSPENDED meanwhile. */
void dthread_resume(struct dthread *d);
/* Goes back to the callback that runs the dthreads. */
void dthread_yield(struct dthread *d);

#endif

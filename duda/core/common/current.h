// SPDX-License-Identifier: Apache-2.0
/*
 * The service whose code runs in this thread now, and what it does. Functions of the API without a `dr` find it here.
 */
#ifndef DUDA_CORE_COMMON_CURRENT_H
#define DUDA_CORE_COMMON_CURRENT_H

#include "service/service.h"

struct current {
    struct service *service;       /* NULL: no code of a service runs */
    struct service_worker *worker; /* NULL: duda_main(), duda_exit() or a thread of the service's own */
    struct service_thread *thread; /* of worker->spawn(), or NULL */
    struct duda_request *request;  /* it was called for; or NULL. A dthread has its own */
    const char *explanation;       /* what the log says of a crash now: a sentence; or NULL */
};

/* Initial-exec: the handler of crashes reads it, and must not allocate. */
extern __attribute__((tls_model("initial-exec"))) _Thread_local struct current current;

/* This process was made by fork() in code of a service (crash/guard.c). */
extern bool current_is_child;

/* Ends such a process, with a line in the log. */
_Noreturn void current_end_child(void);

/* Code of a service has returned. */
static inline void current_check_process(void)
{
    if (MK_UNLIKELY(current_is_child))
        current_end_child();
}

/* Begins a call into a service. Returns what current_leave() needs after the call: calls may be nested. */
static inline struct current current_enter(struct service *service, struct service_worker *worker)
{
    assert(!worker || worker->service == service);
    struct current outer = current;
    current = (struct current){.service = service, .worker = worker};
    if (worker)
        watch_begin(&worker->watch);
    return outer;
}

static inline void current_leave(struct current outer)
{
    current_check_process();
    if (current.worker)
        watch_end(&current.worker->watch);
    current = outer;
}

/* When a function of the API may be called. */
enum phase {
    PHASE_NONE = 0,   /* no code of a service runs, as far as the framework knows */
    PHASE_MAIN = 1,   /* duda_main() */
    PHASE_WORKER = 2, /* a callback in a worker */
    PHASE_THREAD = 4, /* a thread of worker->spawn() */
    PHASE_EXIT = 8,   /* duda_exit() */
    PHASE_LEAVE = 16, /* the rest of a callback that has ended the service in its worker, or a destroy function */
    PHASE_RUNNING = PHASE_WORKER | PHASE_LEAVE | PHASE_THREAD,
    PHASE_ANY = PHASE_MAIN | PHASE_RUNNING | PHASE_EXIT,
};

/* Returns what this thread does now. */
enum phase phase_now(void);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * The service whose code runs in this thread now. Functions of the API without a `dr` find it here.
 */
#ifndef DUDA_CORE_COMMON_CURRENT_H
#define DUDA_CORE_COMMON_CURRENT_H

#include "crash/guard.h"
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
    guard_check_process();
    if (current.worker)
        watch_end(&current.worker->watch);
    current = outer;
}

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * The service whose code runs in this thread now. Functions of the API without a `dr` find it here.
 */
#ifndef DUDA_CORE_CURRENT_H
#define DUDA_CORE_CURRENT_H

struct service;
struct service_worker;

struct current {
    struct service *service;       /* NULL: no code of a service runs */
    struct service_worker *worker; /* NULL: duda_main(), duda_exit() or a thread of the service's own */
};

extern _Thread_local struct current current;

/* Begins a call into a service. Returns what current_leave() needs after the call: calls may be nested. */
static inline struct current current_enter(struct service *service, struct service_worker *worker)
{
    struct current outer = current;
    current = (struct current){service, worker};
    return outer;
}

static inline void current_leave(struct current outer)
{
    current = outer;
}

#endif

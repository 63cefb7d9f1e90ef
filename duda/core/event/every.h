// SPDX-License-Identifier: Apache-2.0
/*
 * Functions of a service that run at an interval in one of its workers (event->every()).
 *
 *     every_begin: the first worker that serves takes them ─► timers ─► a dthread for each run
 *     every_end: no newer configuration uses the service there ─► another worker takes them, if there is one
 */
#ifndef DUDA_CORE_EVENT_EVERY_H
#define DUDA_CORE_EVENT_EVERY_H

#include "service/service.h"

#include <duda/event.h>
#include <monkey/loop.h>

#include <stdatomic.h>

struct service;
struct service_worker;

enum { EVERY_MAX = 256 };

/* In the arena of its service; for the thread of the worker that has it. */
struct every {
    struct every *next;
    uint32_t ms;
    duda_call_fn fn;
    void *data;
    struct service_worker *worker;
    struct mk_timer timer;
    atomic_bool is_running; /* in this worker, or in one that had it before */
};

/* Those of a service. */
struct everies {
    struct every *first; /* constant after duda_main() */
    unsigned n;
    _Atomic(struct service_worker *) worker; /* which has them; NULL: none */
};

FEATURE_SLOT(everies_of, struct everies, service, FEATURE_EVERY)

/* Adds a function, in duda_main(). Returns 0, -EINVAL, -ENOSPC or -ENOMEM. */
int every_add(struct service *s, uint32_t ms, duda_call_fn fn, void *data);
/* The worker serves: it takes those of the service if no other worker has them. */
void every_begin(struct service_worker *w);
/* The worker does not serve any more: all others are woken, and the first one that serves takes those that it has. */
void every_end(struct service_worker *w);
/* The worker was woken. In a call of the service. */
void every_take_over(struct service_worker *w);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * Calls into a service's worker from any thread. A separate eventfd wakes the loop, since a task of the service may
 * run on when the worker and its loop have gone.
 *
 *     any thread ─► inbox (lock, limit) ─► eventfd ─► the worker's loop: calls in order, tasks that have ended, every()
 */
#ifndef DUDA_CORE_SERVICE_INBOX_H
#define DUDA_CORE_SERVICE_INBOX_H

#include "service/service.h"

#include <duda/event.h>
#include <monkey/loop.h>

#include <pthread.h>

struct service;

/*
 * One call: `fn(data)`, or the service's signal callback with `value` if `fn` is NULL. Then `drop(data)`, unless NULL,
 * also if the call is not made.
 */
struct inbox_call {
    struct inbox_call *next;
    duda_call_fn fn, drop;
    void *data;
    uint64_t value;
};

struct inbox {
    struct service_worker *worker;
    pthread_mutex_t lock; /* of the calls */
    struct inbox_call *first, **end;
    unsigned n;
    struct mk_event event;
};

FEATURE_SLOT(inbox_of, struct inbox, service_worker, FEATURE_INBOX)

/* Hooks of features.c: open the inbox of a worker and watch it. Returns 0 or -errno. */
int inbox_open(struct service_worker *w);
/* Stops watching, and frees the calls that wait. No other thread may add any more. */
void inbox_close(struct service_worker *w);

/* Adds a copy of a call. Under the lock of the service. Returns 0, -EAGAIN (it is full) or -ENOMEM. */
int inbox_add(struct inbox *inbox, const struct inbox_call *call);
/* Adds a call to the inbox of one worker of the service, or of all (-1). Returns 0, -ENOENT, -EAGAIN or -ENOMEM. */
int inbox_send(struct service *s, int worker, struct inbox_call call);
/* Wakes the workers of the service, for what they look up themselves. Needs no memory, and no place in an inbox. */
void inbox_wake_all(struct service *s);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * Timers of a service in the loop of a worker (event->timer()). A service has numbers of timers, not pointers: a number
 * of a timer that is over means nothing, even if its slot is used again.
 *
 *     number = uses of the slot << 32 | slot + 1
 */
#ifndef DUDA_CORE_TIMER_H
#define DUDA_CORE_TIMER_H

#include <duda/event.h>

struct service_worker;
struct service_timer;

struct timer_slot {
    struct service_timer *timer; /* NULL: the slot is free */
    uint32_t uses;
    uint32_t next_free; /* index + 1; 0: the last one */
};

/* Of a worker. */
struct timers {
    struct timer_slot *slots;
    uint32_t n;
    uint32_t first_free; /* index + 1 */
};

/* Starts a timer; `interval`: it repeats. Returns its number, or 0 with an -errno in `*ret_err`. */
duda_timer_t timer_start(struct service_worker *w, uint32_t ms, bool interval, duda_call_fn fn, void *data,
                         int *ret_err);
/* Removes a timer. Returns 0 or -ENOENT. */
int timer_cancel(struct service_worker *w, duda_timer_t number);
/* Removes all. */
void timer_cancel_all(struct service_worker *w);

#endif

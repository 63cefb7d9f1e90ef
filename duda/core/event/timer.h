// SPDX-License-Identifier: Apache-2.0
/*
 * Timers of a service in the loop of a worker (event->timer()), by their numbers (slots.h).
 */
#ifndef DUDA_CORE_EVENT_TIMER_H
#define DUDA_CORE_EVENT_TIMER_H

#include "common/slots.h"
#include "service/service.h"

#include <duda/event.h>

struct service_worker;

FEATURE_SLOT(timers_of, struct slots, service_worker, FEATURE_TIMERS)

/* Starts a timer; `interval`: it repeats. Returns its number, or 0 with an -errno in `*ret_err`. */
duda_timer_t timer_start(struct service_worker *w, uint32_t ms, bool interval, duda_call_fn fn, void *data,
                         int *ret_err);
/* Removes a timer. Returns 0 or -ENOENT. */
int timer_cancel(struct service_worker *w, duda_timer_t number);
/* Removes all. */
void timer_cancel_all(struct service_worker *w);

#endif

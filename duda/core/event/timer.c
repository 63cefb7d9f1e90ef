// SPDX-License-Identifier: Apache-2.0
/*
 * Runs timers for services (timer.h).
 */
#include "event/timer.h"

#include "common/current.h"
#include "common/heap.h"
#include "service/service.h"

#include <errno.h>

enum { TIMERS_MAX = 65536 };

struct service_timer {
    struct mk_timer timer;
    struct service_worker *worker;
    uint32_t slot, interval_ms; /* interval 0: it fires once */
    duda_call_fn fn;
    void *data;
    bool in_call, removed;
};

/* ── firing ── */

static void remove_timer(struct service_timer *t)
{
    mk_timer_cancel(&t->timer);
    if (!t->removed)
        slots_remove(timers_of(t->worker), t->slot);
    t->removed = true;
    if (!t->in_call)
        heap_free(t, sizeof(*t));
}

static void on_time(struct mk_timer *timer)
{
    struct service_timer *t = MK_CONTAINER_OF(timer, struct service_timer, timer);
    assert(!t->removed && !t->in_call);
    struct service_worker *w = t->worker;
    struct current outer = service_worker_enter(w);
    t->in_call = true;
    if (t->interval_ms)
        mk_timer_arm(w->loop, timer, t->interval_ms);
    else
        remove_timer(t);
    t->fn(t->data);
    t->in_call = false;
    if (t->removed)
        heap_free(t, sizeof(*t));
    service_worker_leave(w, outer);
}

/* ── for the object ── */

duda_timer_t timer_start(struct service_worker *w, uint32_t ms, bool interval, duda_call_fn fn, void *data,
                         int *ret_err)
{
    *ret_err = fn && (ms || !interval) ? slots_reserve(timers_of(w), TIMERS_MAX) : -EINVAL;
    struct service_timer *t = *ret_err == 0 ? heap_zalloc(sizeof(*t)) : NULL;
    if (!t) {
        *ret_err = *ret_err ? *ret_err : -ENOMEM;
        return 0;
    }
    *t = (struct service_timer){.worker = w, .interval_ms = interval ? ms : 0, .fn = fn, .data = data};
    mk_timer_init(&t->timer, on_time);
    mk_timer_arm(w->loop, &t->timer, ms);
    return slots_add(timers_of(w), t, &t->slot);
}

int timer_cancel(struct service_worker *w, duda_timer_t number)
{
    struct service_timer *t = slots_find(timers_of(w), number);
    if (!t)
        return -ENOENT;
    remove_timer(t);
    return 0;
}

void timer_cancel_all(struct service_worker *w)
{
    for (uint32_t i = 0; i < timers_of(w)->n; i++) {
        struct service_timer *t = slots_get(timers_of(w), i);
        if (t)
            remove_timer(t);
    }
    slots_release(timers_of(w));
}

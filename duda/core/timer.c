// SPDX-License-Identifier: Apache-2.0
/*
 * Runs timers for services (timer.h).
 */
#include "timer.h"

#include "current.h"
#include "heap.h"
#include "service.h"

#include <errno.h>

enum { TIMERS_MAX = 65536, FIRST_SLOTS = 16 };

struct service_timer {
    struct mk_timer timer;
    struct service_worker *worker;
    uint32_t slot, interval_ms; /* interval 0: it fires once */
    duda_call_fn fn;
    void *data;
    bool in_call, removed;
};

/* ── slots ── */

static int add_slots(struct timers *all)
{
    if (all->first_free)
        return 0;
    uint32_t n = all->n ? all->n * 2 : FIRST_SLOTS;
    if (n > TIMERS_MAX)
        return -EAGAIN;
    struct timer_slot *slots = heap_grow(all->slots, all->n * sizeof(*slots), n * sizeof(*slots));
    if (!slots)
        return -ENOMEM;
    for (uint32_t i = n; i-- > all->n;) {
        slots[i].next_free = all->first_free;
        all->first_free = i + 1;
    }
    all->slots = slots;
    all->n = n;
    return 0;
}

static duda_timer_t take_slot(struct timers *all, struct service_timer *t)
{
    t->slot = all->first_free - 1;
    struct timer_slot *slot = &all->slots[t->slot];
    all->first_free = slot->next_free;
    slot->timer = t;
    slot->uses++;
    return (duda_timer_t)slot->uses << 32 | (t->slot + 1);
}

static void free_slot(struct timers *all, uint32_t index)
{
    all->slots[index].timer = NULL;
    all->slots[index].next_free = all->first_free;
    all->first_free = index + 1;
}

static struct service_timer *find_timer(const struct timers *all, duda_timer_t number)
{
    uint32_t index = (uint32_t)number - 1;
    if (!number || index >= all->n || all->slots[index].uses != number >> 32)
        return NULL;
    return all->slots[index].timer;
}

/* ── firing ── */

static void remove_timer(struct service_timer *t)
{
    mk_timer_cancel(&t->timer);
    if (!t->removed)
        free_slot(&t->worker->timers, t->slot);
    t->removed = true;
    if (!t->in_call)
        heap_free(t, sizeof(*t));
}

static void on_time(struct mk_timer *timer)
{
    struct service_timer *t = MK_CONTAINER_OF(timer, struct service_timer, timer);
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
    *ret_err = fn && (ms || !interval) ? add_slots(&w->timers) : -EINVAL;
    struct service_timer *t = *ret_err == 0 ? heap_zalloc(sizeof(*t)) : NULL;
    if (!t) {
        *ret_err = *ret_err ? *ret_err : -ENOMEM;
        return 0;
    }
    *t = (struct service_timer){.worker = w, .interval_ms = interval ? ms : 0, .fn = fn, .data = data};
    mk_timer_init(&t->timer, on_time);
    mk_timer_arm(w->loop, &t->timer, ms);
    return take_slot(&w->timers, t);
}

int timer_cancel(struct service_worker *w, duda_timer_t number)
{
    struct service_timer *t = find_timer(&w->timers, number);
    if (!t)
        return -ENOENT;
    remove_timer(t);
    return 0;
}

void timer_cancel_all(struct service_worker *w)
{
    for (uint32_t i = 0; i < w->timers.n; i++) {
        if (w->timers.slots[i].timer)
            remove_timer(w->timers.slots[i].timer);
    }
    heap_free(w->timers.slots, w->timers.n * sizeof(struct timer_slot));
    w->timers = (struct timers){0};
}

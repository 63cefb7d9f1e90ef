// SPDX-License-Identifier: Apache-2.0
/*
 * Runs functions at an interval in one worker (every.h).
 */
#include "event/every.h"

#include "common/current.h"
#include "dthread/dthread.h"
#include "objects.h"
#include "service/inbox.h"
#include "service/service.h"

#include <errno.h>

int every_add(struct service *s, uint32_t ms, duda_call_fn fn, void *data)
{
    struct every *e, **end = &everies_of(s)->first;
    if (!ms || !fn)
        return -EINVAL;
    if (everies_of(s)->n == EVERY_MAX)
        return -ENOSPC;
    if (!(e = mk_arena_zalloc(&s->arena, sizeof(*e))))
        return -ENOMEM;
    e->ms = ms;
    e->fn = fn;
    e->data = data;
    while (*end)
        end = &(*end)->next;
    *end = e;
    everies_of(s)->n++;
    return 0;
}

/* A dthread that cannot be made is logged; the next time comes. */
static void start_run(struct every *e)
{
    struct dthread *d = dthread_find(e->worker, object_dthread.create(e->fn, e->data));
    if (!d)
        return;
    atomic_store(&e->is_running, true);
    d->is_running = &e->is_running;
}

static void on_time(struct mk_timer *timer)
{
    struct every *e = MK_CONTAINER_OF(timer, struct every, timer);
    assert(e->worker && !e->worker->ended);
    struct service_worker *w = e->worker;
    struct current outer = service_worker_enter(w);
    mk_timer_arm(w->loop, timer, e->ms);
    if (!atomic_load(&e->is_running))
        start_run(e);
    service_worker_leave(w, outer);
}

void every_begin(struct service_worker *w)
{
    struct everies *all = everies_of(w->service);
    struct service_worker *none = NULL;
    if (!all->first || !atomic_compare_exchange_strong(&all->worker, &none, w))
        return;
    for (struct every *e = all->first; e; e = e->next) {
        e->worker = w;
        mk_timer_init(&e->timer, on_time);
        mk_timer_arm(w->loop, &e->timer, e->ms);
    }
}

void every_take_over(struct service_worker *w)
{
    if (w->current && !w->ended)
        every_begin(w);
}

void every_end(struct service_worker *w)
{
    struct everies *all = everies_of(w->service);
    if (!all->first || atomic_load(&all->worker) != w)
        return;
    for (struct every *e = all->first; e; e = e->next)
        mk_timer_cancel(&e->timer);
    atomic_store(&all->worker, NULL);
    inbox_wake_all(w->service);
}

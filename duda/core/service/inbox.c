// SPDX-License-Identifier: Apache-2.0
/*
 * Carries calls to the workers of a service (inbox.h).
 */
#include "service/inbox.h"

#include "common/current.h"
#include "common/heap.h"
#include "event/signals.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { CALLS_MAX = 65536 };

/* ── in the worker ── */

static struct inbox_call *take_calls(struct inbox *inbox)
{
    pthread_mutex_lock(&inbox->lock);
    struct inbox_call *first = inbox->first;
    assert(!first == !inbox->n);
    inbox->first = NULL;
    inbox->end = &inbox->first;
    inbox->n = 0;
    pthread_mutex_unlock(&inbox->lock);
    return first;
}

static void free_calls(struct inbox_call *call)
{
    while (call) {
        struct inbox_call *next = call->next;
        if (call->drop)
            call->drop(call->data);
        heap_free(call, sizeof(*call));
        call = next;
    }
}

static void run_call(const struct service_worker *w, const struct inbox_call *call)
{
    if (call->fn)
        call->fn(call->data);
    else if (signals_of(w->service)->callback)
        signals_of(w->service)->callback(inbox_of(w)->event.fd, call->value);
}

static void on_calls(struct mk_event *event, uint32_t events)
{
    struct service_worker *w = MK_CONTAINER_OF(event, struct inbox, event)->worker;
    eventfd_t count;
    (void)events;
    eventfd_read(event->fd, &count);
    struct inbox_call *first = take_calls(inbox_of(w));
    struct current outer = service_worker_enter(w);
    for (struct inbox_call *call = first; call && !w->ended; call = call->next)
        run_call(w, call);
    free_calls(first);
    FEATURES_CALL(w->service->features, worker_wake, w);
    service_worker_leave(w, outer);
}

int inbox_open(struct service_worker *w)
{
    struct inbox *inbox = inbox_of(w);
    inbox->worker = w;
    inbox->event = (struct mk_event){on_calls, eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
    inbox->end = &inbox->first;
    pthread_mutex_init(&inbox->lock, NULL);
    if (inbox->event.fd < 0)
        return -errno;
    /* each write is an event, also of a descriptor that cannot be read, which would stay readable */
    int err = mk_event_add(w->loop, &inbox->event, EPOLLIN | EPOLLET);
    if (err == 0)
        return 0;
    close(inbox->event.fd);
    inbox->event.fd = -1;
    return err;
}

void inbox_close(struct service_worker *w)
{
    struct inbox *inbox = inbox_of(w);
    if (inbox->event.fd >= 0) {
        if (service_worker_has_loop(w))
            mk_event_del(w->loop, &inbox->event);
        close(inbox->event.fd);
    }
    free_calls(take_calls(inbox));
    pthread_mutex_destroy(&inbox->lock);
}

/* ── from any thread ── */

static int add_call(struct inbox *inbox, struct inbox_call *call)
{
    pthread_mutex_lock(&inbox->lock);
    int err = inbox->n < CALLS_MAX ? 0 : -EAGAIN;
    if (err == 0) {
        bool wakes = !inbox->first;
        *inbox->end = call;
        inbox->end = &call->next;
        inbox->n++;
        if (wakes)
            eventfd_write(inbox->event.fd, 1);
    }
    pthread_mutex_unlock(&inbox->lock);
    return err;
}

int inbox_add(struct inbox *inbox, const struct inbox_call *call)
{
    struct inbox_call *copy = heap_zalloc(sizeof(*copy));
    if (!copy)
        return -ENOMEM;
    *copy = *call;
    copy->next = NULL;
    int err = add_call(inbox, copy);
    if (err < 0)
        heap_free(copy, sizeof(*copy));
    return err;
}

int inbox_send(struct service *s, int worker, struct inbox_call call)
{
    int result = worker < 0 ? 0 : -ENOENT;
    pthread_mutex_lock(&s->lock);
    MK_LIST_EACH_ITEM(&s->workers, struct service_worker, node, w) {
        if (w->ended || (worker >= 0 && w->index != (unsigned)worker))
            continue;
        int err = inbox_add(inbox_of(w), &call);
        if (worker >= 0 || err < 0)
            result = err;
    }
    pthread_mutex_unlock(&s->lock);
    return result;
}

void inbox_wake_all(struct service *s)
{
    pthread_mutex_lock(&s->lock);
    MK_LIST_EACH_ITEM(&s->workers, struct service_worker, node, w) {
        if (!w->ended)
            eventfd_write(inbox_of(w)->event.fd, 1);
    }
    pthread_mutex_unlock(&s->lock);
}

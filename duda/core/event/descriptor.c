// SPDX-License-Identifier: Apache-2.0
/*
 * Watches descriptors for services, and calls their callbacks (descriptor.h).
 */
#include "event/descriptor.h"

#include "common/current.h"
#include "common/heap.h"
#include "log/message.h"
#include "service/service.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FIRST_ITEMS = 64 };

/* ── what a number refers to ── */

static void identify_file(struct descriptor *d)
{
    struct stat st;
    if (fstat(d->handler.fd, &st) == 0) {
        d->device = st.st_dev;
        d->inode = st.st_ino;
    }
}

static bool is_same(const struct descriptor *d)
{
    struct stat st;
    return fstat(d->handler.fd, &st) == 0 && st.st_dev == d->device && st.st_ino == d->inode;
}

/* ── watching ── */

static uint32_t get_epoll_events(int mode, int behavior)
{
    return (mode & DUDA_EVENT_READ ? EPOLLIN : 0u) | (mode & DUDA_EVENT_WRITE ? EPOLLOUT : 0u) |
           (behavior & DUDA_EVENT_EDGE_TRIGGERED ? (uint32_t)EPOLLET : 0u);
}

static int watch_descriptor(struct descriptor *d, int mode, int behavior)
{
    uint32_t events = get_epoll_events(mode, behavior);
    int err = d->watched ? mk_event_change(d->worker->loop, &d->event, events)
                         : mk_event_add(d->worker->loop, &d->event, events);
    if (err == 0) {
        d->watched = true;
        d->handler.mode = mode;
        d->handler.behavior = behavior;
    }
    return err;
}

/* The event is removed from the current turn, too. If the number refers to another file now, that one stays watched.
 */
static void unwatch_descriptor(struct descriptor *d)
{
    if (!d->watched || !service_worker_has_loop(d->worker))
        return;
    if (!is_same(d))
        d->event.fd = -1;
    mk_event_del(d->worker->loop, &d->event);
    d->watched = false;
}

/* ── the table ── */

static int make_room(struct descriptors *all, unsigned fd)
{
    if (fd < all->n)
        return 0;
    unsigned n = all->n ? all->n : FIRST_ITEMS;
    while (n <= fd)
        n *= 2;
    struct descriptor **items = heap_grow(all->items, all->n * sizeof(*items), n * sizeof(*items));
    if (!items)
        return -ENOMEM;
    *all = (struct descriptors){items, n};
    return 0;
}

struct descriptor *descriptor_find(const struct service_worker *w, int fd)
{
    return fd >= 0 && (unsigned)fd < descriptors_of(w)->n ? descriptors_of(w)->items[fd] : NULL;
}

static void free_unused(struct descriptor *d)
{
    if (d->removed && !d->calls)
        heap_free(d, sizeof(*d));
}

void descriptor_remove(struct descriptor *d)
{
    assert(d->removed || descriptors_of(d->worker)->items[d->handler.fd] == d);
    unwatch_descriptor(d);
    mk_timer_cancel(&d->timer);
    if (!d->removed)
        descriptors_of(d->worker)->items[d->handler.fd] = NULL;
    d->removed = true;
    free_unused(d);
}

void descriptor_remove_all(struct service_worker *w)
{
    for (unsigned fd = 0; fd < descriptors_of(w)->n; fd++) {
        if (descriptors_of(w)->items[fd])
            descriptor_remove(descriptors_of(w)->items[fd]);
    }
    heap_free(descriptors_of(w)->items, descriptors_of(w)->n * sizeof(struct descriptor *));
    *descriptors_of(w) = (struct descriptors){0};
}

/* ── callbacks ── */

static int call_handler(struct descriptor *d, duda_fd_fn fn)
{
    int result = fn(d->handler.fd, d->handler.data);
    if (result == DUDA_EVENT_OWNED || result == DUDA_EVENT_CLOSE)
        return result;
    return DUDA_EVENT_CONTINUE;
}

/* Removes it, calls on_close, and closes the number, unless on_close has done so; `always`: whatever on_close returns.
 */
static void close_descriptor(struct descriptor *d, bool always)
{
    int result = DUDA_EVENT_CLOSE;
    bool was_same = is_same(d);
    descriptor_remove(d); /* it stays until the caller has returned: d->calls */
    if (d->handler.on_close)
        result = call_handler(d, d->handler.on_close);
    if ((always || result == DUDA_EVENT_CLOSE) && was_same && is_same(d))
        close(d->handler.fd);
}

static void give_up(struct descriptor *d)
{
    message_log(MK_LOG_WARN,
                "descriptor %d is not watched any more: an event has occurred for which it has no callback",
                d->handler.fd);
    descriptor_remove(d);
}

/* What is called for an error or hang-up that has no own callback: reading or writing tells what it is. */
static duda_fd_fn find_mode_callback(const struct descriptor *d)
{
    return (d->handler.mode & DUDA_EVENT_READ) && d->handler.on_read ? d->handler.on_read : d->handler.on_write;
}

struct ready {
    struct descriptor *d;
    uint32_t events;
    bool called; /* one callback at least */
    bool done;   /* no further callback may be called */
};

static void call_ready(struct ready *r, uint32_t event, duda_fd_fn fn)
{
    if (r->done || !(r->events & event) || !fn)
        return;
    r->called = true;
    int result = call_handler(r->d, fn);
    r->done = result == DUDA_EVENT_OWNED || r->d->removed;
    if (result == DUDA_EVENT_CLOSE && !r->d->removed)
        close_descriptor(r->d, true);
    r->done |= r->d->removed;
}

static void call_error(struct ready *r)
{
    struct descriptor *d = r->d;
    if (r->done || !(r->events & EPOLLERR))
        return;
    if (!d->handler.on_error) {
        if (!r->called)
            call_ready(r, EPOLLERR, find_mode_callback(d));
        return;
    }
    call_ready(r, EPOLLERR, d->handler.on_error);
    if (!r->done)
        close_descriptor(d, true);
    r->done = true;
}

static void call_hangup(struct ready *r)
{
    if (r->done || !(r->events & EPOLLHUP) || r->called)
        return;
    if (!r->d->handler.on_close) {
        call_ready(r, EPOLLHUP, find_mode_callback(r->d));
        return;
    }
    r->called = r->done = true;
    close_descriptor(r->d, false);
}

static void call_callbacks(struct descriptor *d, uint32_t events)
{
    struct ready r = {.d = d, .events = events};
    call_ready(&r, EPOLLIN, d->handler.on_read);
    call_ready(&r, EPOLLOUT, d->handler.on_write);
    call_error(&r);
    call_hangup(&r);
    if (!r.called)
        give_up(d);
}

static void on_ready(struct mk_event *event, uint32_t events)
{
    struct descriptor *d = MK_CONTAINER_OF(event, struct descriptor, event);
    assert(!d->removed);
    struct service_worker *w = d->worker;
    struct current outer = service_worker_enter(w);
    d->calls++;
    if (d->timeout_ms)
        mk_timer_arm(w->loop, &d->timer, d->timeout_ms);
    call_callbacks(d, events);
    d->calls--;
    free_unused(d);
    service_worker_leave(w, outer);
}

static void on_timeout(struct mk_timer *timer)
{
    struct descriptor *d = MK_CONTAINER_OF(timer, struct descriptor, timer);
    assert(d->timeout_ms && !d->removed);
    struct service_worker *w = d->worker;
    struct current outer = service_worker_enter(w);
    d->calls++;
    mk_timer_arm(w->loop, timer, d->timeout_ms);
    if (call_handler(d, d->handler.on_timeout) == DUDA_EVENT_CLOSE && !d->removed)
        close_descriptor(d, true);
    d->calls--;
    free_unused(d);
    service_worker_leave(w, outer);
}

/* ── for the object ── */

/* Returns true if the number was closed without event->delete(), so that it is not watched any more. */
static bool is_stale(struct descriptor *d)
{
    if (!d->watched)
        return !is_same(d);
    return mk_event_change(d->worker->loop, &d->event, get_epoll_events(d->handler.mode, d->handler.behavior)) < 0;
}

static struct descriptor *new_descriptor(struct service_worker *w, const struct duda_event_handler *handler)
{
    struct descriptor *d = heap_zalloc(sizeof(*d));
    if (!d)
        return NULL;
    *d = (struct descriptor){.handler = *handler,
                             .worker = w,
                             .event = {on_ready, handler->fd},
                             .awake_mode = handler->mode};
    mk_timer_init(&d->timer, on_timeout);
    identify_file(d);
    return d;
}

int descriptor_add(struct service_worker *w, const struct duda_event_handler *handler)
{
    struct descriptor *old = descriptor_find(w, handler->fd);
    if (old && !is_stale(old))
        return -EEXIST;
    if (old)
        descriptor_remove(old);
    if (fcntl(handler->fd, F_GETFD) < 0)
        return -errno; /* the table has room up to the highest number */
    int err = make_room(descriptors_of(w), (unsigned)handler->fd);
    struct descriptor *d = err == 0 ? new_descriptor(w, handler) : NULL;
    if (!d)
        return -ENOMEM;
    err = handler->mode == DUDA_EVENT_SLEEP ? 0 : watch_descriptor(d, handler->mode, handler->behavior);
    if (err < 0) {
        heap_free(d, sizeof(*d));
        return err;
    }
    descriptors_of(w)->items[handler->fd] = d;
    return 0;
}

int descriptor_change(struct descriptor *d, int mode, int behavior)
{
    if (mode == DUDA_EVENT_SLEEP) {
        unwatch_descriptor(d);
        d->handler.mode = DUDA_EVENT_SLEEP;
        return 0;
    }
    if (mode == DUDA_EVENT_WAKEUP)
        mode = d->awake_mode;
    int err = mode == DUDA_EVENT_SLEEP ? 0 : watch_descriptor(d, mode, behavior);
    if (err == 0)
        d->awake_mode = mode;
    return err;
}

void descriptor_set_timeout(struct descriptor *d, uint32_t ms)
{
    d->timeout_ms = ms;
    if (ms)
        mk_timer_arm(d->worker->loop, &d->timer, ms);
    else
        mk_timer_cancel(&d->timer);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * The object `event`: checks the arguments and the caller; descriptor.c, timer.c, inbox.c, signals.c and private_loop.c
 * do the work.
 */
#include "event/event.h"

#include "common/api_error.h"
#include "common/current.h"
#include "event/descriptor.h"
#include "event/every.h"
#include "event/private_loop.h"
#include "event/signals.h"
#include "event/timer.h"
#include "log/message.h"
#include "objects.h"
#include "service/inbox.h"
#include "service/service.h"

#include <errno.h>

/* Logs a failed call. Returns -1, or 0 if `err` is 0. */
static int report_error(const char *call, int err)
{
    if (err < 0)
        message_log(MK_LOG_ERROR, "%s: %s", call, strerror(-err));
    return err < 0 ? -1 : 0;
}

/* ── descriptors ── */

static bool is_mode(int mode)
{
    return (mode >= DUDA_EVENT_READ && mode <= DUDA_EVENT_SLEEP) || mode == DUDA_EVENT_WAKEUP;
}

static bool is_behavior(int behavior)
{
    return behavior == DUDA_EVENT_LEVEL_TRIGGERED || behavior == DUDA_EVENT_EDGE_TRIGGERED;
}

static int add_fd(int fd, int mode, int behavior, duda_fd_fn on_read, duda_fd_fn on_write, duda_fd_fn on_error,
                  duda_fd_fn on_close, duda_fd_fn on_timeout, void *data)
{
    static const char call[] = "event->add()";
    if (!phase_check(PHASE_WORKER, call))
        return -1;
    if (fd < 0 || !is_mode(mode) || mode == DUDA_EVENT_WAKEUP || !is_behavior(behavior))
        return report_error(call, -EINVAL);
    struct duda_event_handler handler = {fd, mode, behavior, on_read, on_write, on_error, on_close, on_timeout, data};
    return report_error(call, descriptor_add(current.worker, &handler));
}

static struct descriptor *find_fd(int fd, const char *call)
{
    return phase_check(PHASE_WORKER, call) ? descriptor_find(current.worker, fd) : NULL;
}

struct duda_event_handler *event_lookup(int fd)
{
    struct descriptor *d = find_fd(fd, "event->lookup()");
    return d ? &d->handler : NULL;
}

int event_set_mode(int fd, int mode, int behavior)
{
    static const char call[] = "event->mode()";
    struct descriptor *d = find_fd(fd, call);
    if (!d)
        return -1;
    if (!is_mode(mode) || !is_behavior(behavior))
        return report_error(call, -EINVAL);
    return report_error(call, descriptor_change(d, mode, behavior));
}

int event_delete(int fd)
{
    struct descriptor *d = find_fd(fd, "event->delete()");
    if (d)
        descriptor_remove(d);
    return d ? 0 : -1;
}

static int set_timeout(int fd, uint32_t ms)
{
    struct descriptor *d = find_fd(fd, "event->timeout()");
    if (!d || (ms && !d->handler.on_timeout))
        return -1;
    descriptor_set_timeout(d, ms);
    return 0;
}

/* ── timers ── */

static duda_timer_t start_timer(const char *call, uint32_t ms, bool interval, duda_call_fn fn, void *data)
{
    int err;
    if (!phase_check(PHASE_WORKER, call))
        return 0;
    duda_timer_t timer = timer_start(current.worker, ms, interval, fn, data, &err);
    report_error(call, err);
    return timer;
}

static duda_timer_t start_once(uint32_t ms, duda_call_fn fn, void *data)
{
    return start_timer("event->timer()", ms, false, fn, data);
}

static duda_timer_t start_interval(uint32_t ms, duda_call_fn fn, void *data)
{
    return start_timer("event->interval()", ms, true, fn, data);
}

static int cancel_timer(duda_timer_t timer)
{
    if (!phase_check(PHASE_WORKER, "event->cancel()"))
        return -1;
    return timer_cancel(current.worker, timer) < 0 ? -1 : 0;
}

static int add_every(uint32_t ms, duda_call_fn fn, void *data)
{
    static const char call[] = "event->every()";
    return phase_check(PHASE_MAIN, call) ? report_error(call, every_add(current.service, ms, fn, data)) : -1;
}

/* ── other workers ── */

static int post_call(int worker, duda_call_fn fn, void *data)
{
    static const char call[] = "event->post()";
    if (!phase_check(PHASE_RUNNING, call))
        return -1;
    if (!fn || worker < DUDA_EVENT_ALL_WORKERS)
        return report_error(call, -EINVAL);
    return inbox_send(current.service, worker, (struct inbox_call){.fn = fn, .data = data}) < 0 ? -1 : 0;
}

int event_signal(uint64_t value)
{
    if (!phase_check(PHASE_RUNNING, "event->signal()"))
        return -1;
    struct service *s = current.service;
    signals_send(s, value);
    if (!signals_of(s)->callback)
        return 0;
    return inbox_send(s, DUDA_EVENT_ALL_WORKERS, (struct inbox_call){.value = value}) < 0 ? -1 : 0;
}

int event_set_signal_callback(duda_signal_fn fn)
{
    if (!phase_check(PHASE_MAIN, "event->set_signal_callback()"))
        return -1;
    signals_of(current.service)->callback = fn;
    return 0;
}

int event_create_signal_fd(void)
{
    static const char call[] = "event->create_signal_fd()";
    if (!phase_check(PHASE_MAIN | PHASE_RUNNING, call))
        return -1;
    int fd = signals_open_fd(current.service);
    return fd < 0 ? report_error(call, fd) : fd;
}

/* ── private loops ── */

static bool has_loop(const struct duda_event_loop *loop, const char *call)
{
    if (!loop) {
        message_log(MK_LOG_ERROR, "%s: there is no loop", call);
        errno = EINVAL;
    }
    return loop;
}

static int loop_add(struct duda_event_loop *loop, int fd, int mask, void *data)
{
    return has_loop(loop, "event->loop_add()") ? private_loop_add(loop, fd, mask, data) : -1;
}

static int loop_delete(struct duda_event_loop *loop, int fd)
{
    return has_loop(loop, "event->loop_delete()") ? private_loop_delete(loop, fd) : -1;
}

static int loop_add_timeout(struct duda_event_loop *loop, int seconds)
{
    return has_loop(loop, "event->loop_timeout_create()") ? private_loop_add_timeout(loop, seconds) : -1;
}

static int loop_add_channel(struct duda_event_loop *loop, int *ret_read, int *ret_write)
{
    if (!has_loop(loop, "event->loop_channel_create()"))
        return -1;
    if (ret_read && ret_write)
        return private_loop_add_channel(loop, ret_read, ret_write);
    errno = EINVAL;
    return -1;
}

/* In a worker it would stop all clients: the thread waits without an end. */
static int loop_wait(struct duda_event_loop *loop)
{
    static const char call[] = "event->loop_wait()";
    if (!has_loop(loop, call))
        return -1;
    if (current.worker) {
        api_error_log(current.worker, call,
                      "it waits, and works only in threads of the service's own; the call did nothing");
        errno = EPERM;
        return -1;
    }
    return private_loop_wait(loop);
}

static const char *get_backend(void)
{
    return "epoll";
}

const struct duda_api_event object_event = {
    .add = add_fd,
    .lookup = event_lookup,
    .mode = event_set_mode,
    .del = event_delete,
    .timeout = set_timeout,
    .timer = start_once,
    .interval = start_interval,
    .cancel = cancel_timer,
    .post = post_call,
    .signal = event_signal,
    .set_signal_callback = event_set_signal_callback,
    .create_signal_fd = event_create_signal_fd,
    .loop_create = private_loop_new,
    .loop_add = loop_add,
    .loop_delete = loop_delete,
    .loop_timeout_create = loop_add_timeout,
    .loop_channel_create = loop_add_channel,
    .loop_wait = loop_wait,
    .loop_free = private_loop_free,
    .loop_backend = get_backend,
    .every = add_every,
};

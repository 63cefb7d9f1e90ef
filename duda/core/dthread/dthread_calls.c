// SPDX-License-Identifier: Apache-2.0
/*
 * The object `dthread`: checks the arguments and the caller; dthread.c and channel.c do the work.
 */
#include "common/api_error.h"
#include "common/current.h"
#include "dthread/channel.h"
#include "dthread/dthread.h"
#include "objects.h"
#include "request/request.h"
#include "service/package.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>

enum { TEXT_BYTES = 192 };

/* ── starting ── */

static void report_new(const char *call, int err)
{
    char text[TEXT_BYTES];
    if (err != -EAGAIN) {
        api_error_report(current.worker, call, err);
        return;
    }
    snprintf(
        text, sizeof(text),
        "the process has %u dthreads, a quarter of vm.max_map_count, which is the most: each takes 2 mappings, and "
        "half of them are left to the rest",
        stack_limit());
    api_error_log(current.worker, call, text);
}

static struct dthread *make_dthread(const char *call, struct dthread_entry entry)
{
    int err = -EINVAL;
    if (!phase_check(PHASE_WORKER, call))
        return NULL;
    bool has_function = entry.call || entry.event || entry.handler;
    struct dthread *d = has_function ? dthread_new(current.worker, entry, &err) : NULL;
    if (!d)
        report_new(call, err);
    return d;
}

static duda_dthread_t create_dthread(duda_call_fn fn, void *data)
{
    struct dthread *d = make_dthread("dthread->create()", (struct dthread_entry){.call = fn, .data = data});
    if (!d)
        return 0;
    dthread_start(d);
    return d->number;
}

/* Starts a dthread for a request. Returns its number, or 0, which is logged. */
static duda_dthread_t start_for_request(duda_request_t *dr, const char *call, struct dthread_entry entry)
{
    struct dthread *d = request_check_lasting(dr, call) == 0 ? make_dthread(call, entry) : NULL;
    if (!d)
        return 0;
    dthread_attach(d, dr);
    dthread_start(d);
    return d->number;
}

static duda_dthread_t handle_request(duda_request_t *dr, duda_event_fn fn, void *data)
{
    return start_for_request(dr, "dthread->handle()", (struct dthread_entry){.event = fn, .data = data});
}

bool dthread_call_handler(struct duda_request *dr, duda_request_fn handler)
{
    struct current outer = request_enter(dr);
    duda_dthread_t number = start_for_request(dr, "router->in_dthread()", (struct dthread_entry){.handler = handler});
    current_leave(outer);
    return number != 0;
}

static duda_dthread_t get_running(void)
{
    const struct dthread *d = current.worker ? dthreads_of(current.worker)->running : NULL;
    return d ? d->number : 0;
}

static struct dthread *find_dthread(duda_dthread_t number)
{
    return current.worker ? dthread_find(current.worker, number) : NULL;
}

static bool is_alive(duda_dthread_t number)
{
    return find_dthread(number);
}

static int cancel_dthread(duda_dthread_t number)
{
    struct dthread *d = find_dthread(number);
    if (!d)
        return -ESRCH;
    if (d->state == STATE_RUNNING)
        return api_error_report(current.worker, "dthread->cancel()", -EINVAL);
    dthread_interrupt(d, -ECANCELED);
    return 0;
}

/* ── waits ── */

static int do_sleep(uint32_t ms)
{
    int err;
    struct dthread *d = dthread_begin_wait("dthread->sleep()", &err);
    if (!d)
        return err;
    err = ms ? dthread_suspend(d, ms) : dthread_suspend_turn(d);
    return err == -ETIMEDOUT ? 0 : err;
}

static int yield_dthread(void)
{
    int err;
    struct dthread *d = dthread_begin_wait("dthread->yield()", &err);
    return d ? dthread_suspend_turn(d) : err;
}

/* Looks without waiting. */
static int check_fd(int fd, int mode)
{
    struct pollfd p = {.fd = fd,
                       .events =
                           (short)((mode & DUDA_EVENT_READ ? POLLIN : 0) | (mode & DUDA_EVENT_WRITE ? POLLOUT : 0))};
    int n = poll(&p, 1, 0);
    if (n < 0 || p.revents & POLLNVAL)
        return n < 0 ? -errno : -EBADF;
    if (n == 0)
        return -EAGAIN;
    if (p.revents & (POLLIN | POLLOUT))
        return p.revents & POLLIN ? DUDA_EVENT_READ : DUDA_EVENT_WRITE;
    return mode & DUDA_EVENT_READ ? DUDA_EVENT_READ : DUDA_EVENT_WRITE; /* the call tells what has happened */
}

static int poll_fd(int fd, int mode, uint32_t timeout_ms)
{
    static const char call[] = "dthread->poll()";
    int err;
    struct dthread *d = dthread_begin_wait(call, &err);
    if (!d)
        return err;
    if (fd < 0 || mode < DUDA_EVENT_READ || mode > DUDA_EVENT_RW)
        return api_error_report(current.worker, call, -EINVAL);
    if (!timeout_ms)
        return check_fd(fd, mode);
    return dthread_suspend_for_fd(d, fd, mode, timeout_ms);
}

static int join_dthread(duda_dthread_t number, uint32_t timeout_ms)
{
    int err;
    struct dthread *d = dthread_begin_wait("dthread->join()", &err);
    struct dthread *other = d ? find_dthread(number) : NULL;
    if (!other)
        return err;
    if (other == d)
        return api_error_report(current.worker, "dthread->join()", -EDEADLK);
    if (!timeout_ms)
        return -EAGAIN;
    struct waiter waiter = {.dthread = d};
    mk_list_add(&other->joiners, &waiter.node);
    return dthread_suspend_for(d, &waiter, 1, timeout_ms);
}

static int wait_for_wake(uint32_t timeout_ms)
{
    int err;
    struct dthread *d = dthread_begin_wait("dthread->wait()", &err);
    if (!d)
        return err;
    bool woken = d->woken;
    d->woken = false;
    if (woken || !timeout_ms)
        return woken ? 0 : -EAGAIN;
    d->waits_for_wake = true;
    err = dthread_suspend(d, timeout_ms);
    d->waits_for_wake = false;
    return err;
}

static int wake_dthread(duda_dthread_t number)
{
    struct dthread *d = find_dthread(number);
    if (!d)
        return -ESRCH;
    if (d->state == STATE_WAITING && d->waits_for_wake)
        dthread_wake(d, 0);
    else
        d->woken = true;
    return 0;
}

/* ── waits of packages ── */

int dthread_begin_package_wait(struct duda_package_wait *wait, const char *call)
{
    int err;
    *wait = (struct duda_package_wait){.dthread = dthread_begin_wait(call, &err)};
    return wait->dthread ? 0 : err;
}

int dthread_wait_for_package(struct duda_package_wait *wait, uint32_t timeout_ms)
{
    if (wait->is_over || !timeout_ms)
        return wait->is_over ? wait->result : -EAGAIN;
    wait->waits = true;
    int result = dthread_suspend(wait->dthread, timeout_ms);
    wait->waits = false;
    return result;
}

void dthread_wake_by_package(struct duda_package_wait *wait, int result)
{
    struct dthread *d = wait->dthread;
    if (wait->is_over)
        return;
    wait->is_over = true;
    wait->result = result;
    if (wait->waits && d->state == STATE_WAITING) /* else another wake or an error was first */
        dthread_wake(d, result);
}

/* ── channels ── */

static struct duda_channel *make_channel(unsigned size)
{
    static const char call[] = "dthread->channel()";
    int err;
    if (!phase_check(PHASE_WORKER, call))
        return NULL;
    struct duda_channel *c = channel_new(current.worker, size, &err);
    if (!c)
        api_error_report(current.worker, call, err);
    return c;
}

static bool has_channel(const struct duda_channel *c, const char *call)
{
    if (c && current.worker && channel_is_of(c, current.worker))
        return true;
    api_error_log(current.worker, call, c ? "the channel belongs to another worker" : "there is no channel");
    return false;
}

static bool has_channels(struct duda_channel *const *channels, unsigned n, const char *call)
{
    bool all = channels && n && n <= DUDA_SELECT_MAX;
    if (!all)
        api_error_report(current.worker, call, -EINVAL);
    for (unsigned i = 0; i < n && all; i++)
        all = has_channel(channels[i], call);
    return all;
}

static int send_value(struct duda_channel *c, void *value, uint32_t timeout_ms)
{
    static const char call[] = "dthread->send()";
    int err;
    if (!has_channel(c, call))
        return -EINVAL;
    if (!timeout_ms)
        return channel_try_send(c, value);
    struct dthread *d = dthread_begin_wait(call, &err);
    return d ? channel_send(d, c, value, timeout_ms) : err;
}

static int receive_value(struct duda_channel *c, void **ret, uint32_t timeout_ms)
{
    static const char call[] = "dthread->receive()";
    void *unused;
    int err;
    if (!has_channel(c, call))
        return -EINVAL;
    if (!timeout_ms)
        return channel_try_receive(c, ret ? ret : &unused);
    struct dthread *d = dthread_begin_wait(call, &err);
    return d ? channel_receive(d, c, ret ? ret : &unused, timeout_ms) : err;
}

static int select_channel(struct duda_channel *const *channels, unsigned n, void **ret, uint32_t timeout_ms)
{
    static const char call[] = "dthread->select()";
    void *unused;
    int err;
    if (!has_channels(channels, n, call))
        return -EINVAL;
    if (!timeout_ms)
        return channel_try_select(channels, n, ret ? ret : &unused);
    struct dthread *d = dthread_begin_wait(call, &err);
    return d ? channel_select(d, channels, n, ret ? ret : &unused, timeout_ms) : err;
}

static void close_channel(struct duda_channel *c)
{
    if (has_channel(c, "dthread->close()"))
        channel_close(c);
}

static void free_channel(struct duda_channel *c)
{
    if (c && has_channel(c, "dthread->channel_free()"))
        channel_free(c);
}

const struct duda_api_dthread object_dthread = {
    .create = create_dthread,
    .handle = handle_request,
    .running = get_running,
    .alive = is_alive,
    .cancel = cancel_dthread,
    .sleep = do_sleep,
    .yield = yield_dthread,
    .poll = poll_fd,
    .join = join_dthread,
    .wait = wait_for_wake,
    .wake = wake_dthread,
    .channel = make_channel,
    .send = send_value,
    .receive = receive_value,
    .select = select_channel,
    .close = close_channel,
    .channel_free = free_channel,
};

// SPDX-License-Identifier: Apache-2.0
/*
 * The original API: coroutines that resume each other (<duda/compat/dthread.h>), on those of dthread.c.
 */
#include "common/api_error.h"
#include "common/current.h"
#include "common/heap.h"
#include "compat/old.h"
#include "dthread/dthread.h"
#include "service/service.h"

#include <errno.h>

enum { CHANNEL_MAX = 65536, RESUMES_MAX = 1000 };

/* ── dthreads ── */

static int create_dthread(void (*fn)(void *), void *data)
{
    static const char call[] = "dthread->create()";
    int err = -EINVAL;
    if (!phase_check(PHASE_WORKER, call))
        return -1;
    struct dthread *d = fn ? dthread_new(current.worker, (struct dthread_entry){.call = fn, .data = data}, &err) : NULL;
    if (!d)
        api_error_log(current.worker, call, err == -EAGAIN ? "too many dthreads" : strerror(-err));
    return d ? (int)d->slot : -1;
}

static struct dthread *find_dthread(int id)
{
    return current.worker && id >= 0 ? slots_get(&dthreads_of(current.worker)->slots, (uint32_t)id) : NULL;
}

static int get_status(int id)
{
    static const int statuses[] = {
        [STATE_NEW] = DTHREAD_READY,       [STATE_READY] = DTHREAD_SUSPEND,     [STATE_RUNNING] = DTHREAD_RUNNING,
        [STATE_WAITING] = DTHREAD_SUSPEND, [STATE_SUSPENDED] = DTHREAD_SUSPEND,
    };
    const struct dthread *d = find_dthread(id);
    return d ? statuses[d->state] : DTHREAD_DEAD;
}

static int get_running(void)
{
    const struct dthread *d = current.worker ? dthreads_of(current.worker)->running : NULL;
    return d ? (int)d->slot : -1;
}

/* Returns whether a dthread could be resumed, and was. */
static bool try_resume(int id, const char *call)
{
    struct dthread *d = find_dthread(id);
    struct service_worker *w = current.worker;
    bool can_switch = w && (!dthreads_of(w)->running || dthread_may_wait(w));
    if (!d || !can_switch || (d->state != STATE_NEW && d->state != STATE_SUSPENDED)) {
        api_error_log(w, call,
                      !can_switch ? "a function that the framework calls cannot switch below a dthread"
                      : d         ? "the dthread runs"
                                  : "the dthread has ended, or there was none");
        return false;
    }
    dthread_resume(d);
    return true;
}

static void resume_dthread(int id)
{
    try_resume(id, "dthread->resume()");
}

static void yield_dthread(void)
{
    struct service_worker *w = current.worker;
    if (w && dthread_may_wait(w))
        dthread_yield(dthreads_of(w)->running);
    else
        api_error_log(w, "dthread->yield()", "only a dthread can yield");
}

/* ── channels ── */

struct duda_dthread_channel {
    unsigned size, begin, n;
    int sender, receiver; /* -1: none */
    bool ended;
    void (*free_value)(void *value); /* or NULL */
    void *values[];
};

static size_t get_bytes(unsigned size)
{
    return sizeof(struct duda_dthread_channel) + size * sizeof(void *);
}

static duda_dthread_channel_t *create_channel(int size, void (*free_value)(void *value))
{
    unsigned places = size > 0 ? (unsigned)size : 1;
    duda_dthread_channel_t *c = places <= CHANNEL_MAX ? heap_zalloc(get_bytes(places)) : NULL;
    if (c)
        *c = (duda_dthread_channel_t){.size = places, .sender = -1, .receiver = -1, .free_value = free_value};
    return c;
}

static void free_channel(duda_dthread_channel_t *c)
{
    if (!c)
        return;
    for (unsigned i = 0; c->free_value && i < c->n; i++)
        c->free_value(c->values[(c->begin + i) % c->size]);
    heap_free(c, get_bytes(c->size));
}

static int get_sender(duda_dthread_channel_t *c)
{
    return c->sender;
}

static void set_sender(duda_dthread_channel_t *c, int id)
{
    c->sender = id;
}

static int get_receiver(duda_dthread_channel_t *c)
{
    return c->receiver;
}

static void set_receiver(duda_dthread_channel_t *c, int id)
{
    c->receiver = id;
}

static int is_done(duda_dthread_channel_t *c)
{
    return c->ended && !c->n;
}

static void end_channel(duda_dthread_channel_t *c)
{
    c->ended = true;
}

/* One of the other side that yields without end does not keep the worker: after many resumes the channel is broken. */
static int send_value(duda_dthread_channel_t *c, void *data)
{
    for (unsigned i = 0; c->n == c->size && i < RESUMES_MAX; i++) {
        if (!find_dthread(c->receiver) || !try_resume(c->receiver, "dthread->chan_send()"))
            break;
    }
    if (c->ended || c->n == c->size || !find_dthread(c->receiver))
        return DTHREAD_CHANNEL_BROKEN;
    c->values[(c->begin + c->n++) % c->size] = data;
    return DTHREAD_CHANNEL_OK;
}

static void *receive_value(duda_dthread_channel_t *c)
{
    for (unsigned i = 0; !c->n && !c->ended && i < RESUMES_MAX; i++) {
        if (!find_dthread(c->sender) || !try_resume(c->sender, "dthread->chan_recv()"))
            break;
    }
    if (!c->n)
        return NULL;
    void *value = c->values[c->begin];
    c->begin = (c->begin + 1) % c->size;
    c->n--;
    return value;
}

const struct duda_old_dthread old_dthread = {
    .create = create_dthread,
    .status = get_status,
    .yield = yield_dthread,
    .resume = resume_dthread,
    .running = get_running,
    .chan_create = create_channel,
    .chan_free = free_channel,
    .chan_get_sender = get_sender,
    .chan_set_sender = set_sender,
    .chan_get_receiver = get_receiver,
    .chan_set_receiver = set_receiver,
    .chan_done = is_done,
    .chan_end = end_channel,
    .chan_send = send_value,
    .chan_recv = receive_value,
};

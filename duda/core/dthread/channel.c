// SPDX-License-Identifier: Apache-2.0
/*
 * Passes values from dthread to dthread (channel.h).
 */
#include "dthread/channel.h"

#include "common/heap.h"
#include "dthread/dthread.h"
#include "service/service.h"

#include <assert.h>
#include <errno.h>

enum { CHANNEL_MAX = 65536 };

struct duda_channel {
    struct mk_list node; /* in dthreads.channels */
    struct service_worker *worker;
    struct mk_list senders, receivers; /* struct waiter */
    bool closed;
    unsigned size, begin, n;
    void *values[];
};

static size_t get_bytes(unsigned size)
{
    return sizeof(struct duda_channel) + size * sizeof(void *);
}

struct duda_channel *channel_new(struct service_worker *w, unsigned size, int *ret_err)
{
    *ret_err = size > CHANNEL_MAX ? -EINVAL : -ENOMEM;
    struct duda_channel *c = size > CHANNEL_MAX ? NULL : heap_zalloc(get_bytes(size));
    if (!c)
        return NULL;
    *ret_err = 0;
    c->worker = w;
    c->size = size;
    mk_list_init(&c->senders);
    mk_list_init(&c->receivers);
    mk_list_add(&dthreads_of(w)->channels, &c->node);
    return c;
}

bool channel_is_of(const struct duda_channel *c, const struct service_worker *w)
{
    return c->worker == w;
}

static struct waiter *get_first(struct mk_list *list)
{
    return mk_list_empty(list) ? NULL : MK_LIST_FIRST(list, struct waiter, node);
}

/* The list loses the waiter, and the others of its dthread their lists. */
static void wake_waiter(struct waiter *waiter, int result)
{
    dthread_wake(waiter->dthread, result);
}

void channel_close(struct duda_channel *c)
{
    struct waiter *waiter;
    c->closed = true;
    while ((waiter = get_first(&c->senders)))
        wake_waiter(waiter, -EPIPE);
    while ((waiter = get_first(&c->receivers))) {
        waiter->is_closed = true;
        wake_waiter(waiter, (int)waiter->index);
    }
}

void channel_free(struct duda_channel *c)
{
    channel_close(c);
    assert(mk_list_empty(&c->senders) && mk_list_empty(&c->receivers));
    mk_list_del(&c->node);
    heap_free(c, get_bytes(c->size));
}

void channel_free_all(struct service_worker *w)
{
    while (!mk_list_empty(&dthreads_of(w)->channels))
        channel_free(MK_LIST_FIRST(&dthreads_of(w)->channels, struct duda_channel, node));
}

/* ── without waiting ── */

static void push_value(struct duda_channel *c, void *value)
{
    assert(c->n < c->size);
    c->values[(c->begin + c->n++) % c->size] = value;
}

static void *pop_value(struct duda_channel *c)
{
    assert(c->n > 0 && c->begin < c->size);
    void *value = c->values[c->begin];
    c->begin = (c->begin + 1) % c->size;
    c->n--;
    return value;
}

int channel_try_send(struct duda_channel *c, void *value)
{
    struct waiter *receiver = get_first(&c->receivers);
    assert(!receiver || !c->n);
    if (c->closed)
        return -EPIPE;
    if (receiver) {
        receiver->value = value;
        wake_waiter(receiver, (int)receiver->index);
        return 0;
    }
    if (c->n == c->size)
        return -EAGAIN;
    push_value(c, value);
    return 0;
}

int channel_try_receive(struct duda_channel *c, void **ret)
{
    struct waiter *sender = get_first(&c->senders);
    assert(!sender || c->n == c->size);
    *ret = NULL;
    if (!c->n && !sender)
        return c->closed ? -EPIPE : -EAGAIN;
    if (c->n)
        *ret = pop_value(c);
    else
        *ret = sender->value;
    if (!sender)
        return 0;
    if (c->size)
        push_value(c, sender->value);
    wake_waiter(sender, 0);
    return 0;
}

int channel_try_select(struct duda_channel *const *channels, unsigned n, void **ret)
{
    for (unsigned i = 0; i < n; i++) {
        if (channel_try_receive(channels[i], ret) != -EAGAIN)
            return (int)i;
    }
    return -EAGAIN;
}

/* ── with waiting ── */

int channel_send(struct dthread *d, struct duda_channel *c, void *value, uint32_t timeout_ms)
{
    int result = channel_try_send(c, value);
    if (result != -EAGAIN)
        return result;
    struct waiter waiter = {.dthread = d, .value = value};
    mk_list_add(&c->senders, &waiter.node);
    return dthread_suspend_for(d, &waiter, 1, timeout_ms);
}

int channel_select(struct dthread *d, struct duda_channel *const *channels, unsigned n, void **ret, uint32_t timeout_ms)
{
    struct waiter waiters[DUDA_SELECT_MAX];
    assert(n <= DUDA_SELECT_MAX);
    int result = channel_try_select(channels, n, ret);
    if (result != -EAGAIN)
        return result;
    for (unsigned i = 0; i < n; i++) {
        waiters[i] = (struct waiter){.dthread = d, .index = i};
        mk_list_add(&channels[i]->receivers, &waiters[i].node);
    }
    result = dthread_suspend_for(d, waiters, n, timeout_ms);
    *ret = result >= 0 ? waiters[result].value : NULL;
    return result;
}

int channel_receive(struct dthread *d, struct duda_channel *c, void **ret, uint32_t timeout_ms)
{
    int result = channel_try_receive(c, ret);
    if (result != -EAGAIN)
        return result;
    struct waiter waiter = {.dthread = d, .index = 0};
    mk_list_add(&c->receivers, &waiter.node);
    result = dthread_suspend_for(d, &waiter, 1, timeout_ms);
    *ret = result == 0 ? waiter.value : NULL;
    return waiter.is_closed ? -EPIPE : result;
}

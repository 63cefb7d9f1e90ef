// SPDX-License-Identifier: Apache-2.0
/*
 * Passes connections from the control thread to a worker (server/worker/receiver.h). A message that was taken is put on
 * a stack; the control thread takes all of the stack when it has no spare message left, so that neither waits for the
 * other.
 */
#include "server/worker/receiver.h"

#include "server/listen/acceptor.h"

#include <monkey/base/arena.h>

#include <assert.h>
#include <errno.h>

/* One connection on its way. In a list of messages to use, message.next is the next one. */
struct mk__handoff {
    struct mk_message message;
    struct mk__receiver *receiver;
    const struct mk__listener *listener;
    struct mk__accepted accepted;
};

static struct mk__handoff *handoff_of(struct mk_message *message)
{
    return message ? MK_CONTAINER_OF(message, struct mk__handoff, message) : NULL;
}

/* ── in the control thread ── */

/* Returns a message to use. NULL: no memory. */
static struct mk__handoff *take_spare(struct mk__receiver *r)
{
    if (!r->spare)
        r->spare = atomic_exchange_explicit(&r->returned, NULL, memory_order_acquire);
    struct mk__handoff *one = r->spare;
    if (!one)
        return mk_account_alloc(NULL, sizeof(*one));
    r->spare = handoff_of(one->message.next);
    return one;
}

static void on_handoff(struct mk_message *message);

int mk__receiver_send(struct mk__receiver *r, const struct mk__listener *listener, const struct mk__accepted *accepted)
{
    assert(accepted->fd >= 0);
    struct mk__handoff *one = take_spare(r);
    if (!one)
        return -ENOMEM;
    *one = (struct mk__handoff){.message.fn = on_handoff, .receiver = r, .listener = listener, .accepted = *accepted};
    /* counted before it is sent: the worker may close it at once */
    atomic_fetch_add_explicit(&r->assigned, 1, memory_order_relaxed);
    mk_post(r->loop, &one->message);
    return 0;
}

/* ── in the worker's thread ── */

static void return_handoff(struct mk__receiver *r, struct mk__handoff *one)
{
    struct mk__handoff *top = atomic_load_explicit(&r->returned, memory_order_relaxed);
    do
        one->message.next = top ? &top->message : NULL;
    while (!atomic_compare_exchange_weak_explicit(&r->returned, &top, one, memory_order_release, memory_order_relaxed));
}

static void on_handoff(struct mk_message *message)
{
    struct mk__handoff *one = handoff_of(message);
    struct mk__receiver *r = one->receiver;
    const struct mk__listener *listener = one->listener;
    struct mk__accepted accepted = one->accepted;
    return_handoff(r, one);
    if (r->callbacks->serve(r->ctx, listener, &accepted) == -ENOMEM)
        r->out_of_memory = true;
}

static void on_balancer_end(struct mk_message *message)
{
    struct mk__receiver *r = MK_CONTAINER_OF(message, struct mk__receiver, end_message);
    r->enabled = false;
    r->callbacks->on_end(r->ctx);
}

void mk__receiver_count_accepted(struct mk__receiver *r)
{
    atomic_fetch_sub_explicit(&r->closed, 1, memory_order_relaxed);
}

void mk__receiver_count_closed(struct mk__receiver *r)
{
    assert(mk__receiver_load(r) > 0);
    atomic_fetch_add_explicit(&r->closed, 1, memory_order_relaxed);
    if (r->out_of_memory)
        r->out_of_memory = false;
}

/* ── beginning and end ── */

void mk__receiver_init(struct mk__receiver *r, struct mk_loop *loop, bool enabled,
                       const struct mk__receiver_callbacks *callbacks, void *ctx)
{
    *r = (struct mk__receiver){
        .loop = loop, .enabled = enabled, .callbacks = callbacks, .ctx = ctx, .end_message.fn = on_balancer_end};
}

static void free_handoffs(struct mk__handoff *one)
{
    while (one) {
        struct mk__handoff *next = handoff_of(one->message.next);
        mk_account_free(NULL, one, sizeof(*one));
        one = next;
    }
}

void mk__receiver_release(struct mk__receiver *r)
{
    assert(mk__receiver_load(r) == 0);
    free_handoffs(r->spare);
    free_handoffs(atomic_exchange_explicit(&r->returned, NULL, memory_order_acquire));
    r->spare = NULL;
}

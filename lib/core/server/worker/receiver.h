// SPDX-License-Identifier: Apache-2.0
/*
 * The worker's side of the fair scheduler (server/worker/balancer.h): takes the connections that the control thread
 * hands off, each in a message, and counts them.
 *
 *     control: accept4 ─► pick ─► mk__receiver_send ─► mk_post ──────┐
 *     worker:  serve ◄─ message {listener, descriptor} ◄─ inbox ◄────┘
 *                          └─► returned ─► the control thread uses the message again
 *
 * There are as many messages as connections were on their way at one time, at most one for each descriptor.
 *
 * load = assigned (written by the control thread) - closed (written by the worker).
 */
#ifndef MK_SERVER_RECEIVER_H
#define MK_SERVER_RECEIVER_H

#include <monkey/loop.h>

#include <stdatomic.h>
#include <stdbool.h>

struct mk__accepted;
struct mk__handoff;
struct mk__listener;

/* What the worker does; all are called in its thread, or in the one that closes it. */
struct mk__receiver_callbacks {
    /* Takes the descriptor. Returns 0, or -ENOMEM: the worker has no memory for another connection. */
    int (*serve)(void *ctx, const struct mk__listener *listener, const struct mk__accepted *accepted);
    unsigned (*evict)(void *ctx, unsigned n); /* closes up to `n` idle connections; returns how many */
    void (*on_end)(void *ctx);                /* the control thread hands off no more */
};

/*
 * Except for `evict_pending`, `out_of_memory` and `returned` each field has one writer. The padding keeps the fields of
 * the two writers in different cache lines.
 */
struct mk__receiver {
    _Atomic uint32_t assigned;  /* connections that were handed off; written by the control thread */
    _Atomic bool evict_pending; /* asked to make room, and has not answered yet; written by both */
    struct mk__handoff *spare;  /* messages to use; the control thread's */
    void *owner;                /* the struct mk__balancer that asked to make room */
    unsigned evict_max;         /* connections that it is asked to close */
    struct mk_message evict_message;
    char padding[64];
    _Atomic uint32_t closed;    /* connections that were closed, less those that the worker accepted itself */
    _Atomic bool out_of_memory; /* no memory for another connection; written by both */
    bool enabled;               /* the control thread may hand off more */
    _Atomic(struct mk__handoff *) returned; /* messages that the worker has taken */
    struct mk_message end_message;          /* to the worker: the control thread hands off no more */
    struct mk_message evicted_message;      /* to the control thread: connections were closed */
    struct mk_loop *loop;                   /* the worker's; this and the next two are never changed */
    const struct mk__receiver_callbacks *callbacks;
    void *ctx;
};

/* `enabled`: the control thread will hand off connections. */
void mk__receiver_init(struct mk__receiver *r, struct mk_loop *loop, bool enabled,
                       const struct mk__receiver_callbacks *callbacks, void *ctx);
/* Frees the messages. The loop is closed, so that all have been taken, and the control thread hands off no more. */
void mk__receiver_release(struct mk__receiver *r);

/* Hands a connection off to the worker, and counts it. Returns 0 or -ENOMEM. In the control thread. */
int mk__receiver_send(struct mk__receiver *r, const struct mk__listener *listener, const struct mk__accepted *accepted);

/* Returns the number of connections that the worker has, or that were handed off and not taken yet. Any thread. */
static inline uint32_t mk__receiver_load(const struct mk__receiver *r)
{
    return atomic_load_explicit(&r->assigned, memory_order_relaxed) -
           atomic_load_explicit(&r->closed, memory_order_relaxed);
}

/* Counts a connection that the worker has accepted itself, so that the load stays right. In the worker's thread. */
void mk__receiver_count_accepted(struct mk__receiver *r);
/* Counts a connection that was closed. In the worker's thread. */
void mk__receiver_count_closed(struct mk__receiver *r);

#endif

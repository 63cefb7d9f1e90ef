// SPDX-License-Identifier: Apache-2.0
/*
 * The lines of one worker for one log: a chain of rings that grows while the writer is behind.
 *
 *     the writer takes here          the worker puts in here
 *       out ─► ring 256K ─► ring 512K ─► ring 1M ◄─ in
 *
 * Only the last ring gets lines. The writer frees the others once they are empty. After a burst the worker goes back to
 * a ring of the first size. One thread on either side, no locks.
 */
#ifndef LOGGER_QUEUE_H
#define LOGGER_QUEUE_H

#include "ring.h"

enum { QUEUE_FIRST_BYTES = 256 * 1024 };

struct queue_ring {
    struct ring ring;
    _Atomic(struct queue_ring *) next; /* set once: the worker writes to that one from then on */
};

struct queue {
    struct queue_ring *in, *out;
    size_t first;           /* bytes of the first ring */
    _Atomic size_t max;     /* of all rings together; the worker's */
    _Atomic uint64_t put;   /* bytes in all; the worker's */
    unsigned idle_count;    /* so often the large ring was found empty; the worker's */
    _Atomic uint64_t taken; /* bytes in all; the writer's */
    _Atomic size_t bytes;   /* of all rings */
};

/* `max`: of all rings together, at least 32 KB. 0 or -ENOMEM. */
int queue_init(struct queue *q, size_t max);
void queue_release(struct queue *q);

/*
 * The worker: room for a line of `bytes` at the most, to be followed by queue_commit(). NULL: the queue is full, or
 * there is no memory. With `may_exceed` it may become twice as large.
 */
char *queue_reserve(struct queue *q, size_t bytes, bool may_exceed);

/* How many bytes wait to be written. */
static inline uint64_t queue_waiting(const struct queue *q)
{
    uint64_t taken = atomic_load(&q->taken); /* first: `put` is never less */
    return atomic_load(&q->put) - taken;
}

/* The worker: the line is there. Returns how many bytes wait now. */
static inline uint64_t queue_commit(struct queue *q, size_t bytes)
{
    uint64_t put = atomic_load_explicit(&q->put, memory_order_relaxed) + bytes;
    atomic_store_explicit(&q->put, put, memory_order_relaxed); /* before the writer can take it */
    ring_commit(&q->in->ring, bytes);
    return put - atomic_load_explicit(&q->taken, memory_order_relaxed);
}

/* The writer: the oldest bytes, in one piece; empty when there are none. */
struct mk_str queue_peek(struct queue *q);

static inline void queue_drop(struct queue *q, size_t bytes)
{
    ring_drop(&q->out->ring, bytes);
    atomic_fetch_add(&q->taken, bytes);
}

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * The lines of one worker for one log: a chain of rings that grows while the writer is behind.
 *
 *     the writer reads here          the worker writes here
 *       out ─► ring 256K ─► ring 512K ─► ring 1M ◄─ in
 *
 * Only the last ring gets lines. The writer frees the others when they are empty. After a burst the worker returns to a
 * ring of the first size. One thread on either side, no locks.
 */
#ifndef LOGGER_QUEUE_H
#define LOGGER_QUEUE_H

#include "ring.h"

enum { QUEUE_FIRST_BYTES = 256 * 1024 };

struct queue_ring {
    struct ring ring;
    _Atomic(struct queue_ring *) next; /* set once; then the worker writes to that one */
};

struct queue {
    struct queue_ring *in, *out;
    size_t first;           /* bytes of the first ring */
    _Atomic size_t max;     /* bytes of all rings together; set by the worker */
    _Atomic uint64_t put;   /* bytes written so far; by the worker */
    unsigned idle_count;    /* how often the worker found the large ring empty */
    _Atomic uint64_t taken; /* bytes read so far; by the writer */
    _Atomic size_t bytes;   /* of all rings */
};

/* Prepares a queue. `max`: bytes of all rings together, at least 32 KB. Returns 0 or -ENOMEM. */
int queue_init(struct queue *q, size_t max);
void queue_release(struct queue *q);

/*
 * Returns room for a line of at most `bytes`, for the worker; queue_commit() follows. NULL: the queue is full, or there
 * is no memory. With `may_exceed` the queue may grow to twice its maximum.
 */
char *queue_reserve(struct queue *q, size_t bytes, bool may_exceed);

/* Returns the bytes that wait. Any thread. */
static inline uint64_t queue_waiting(const struct queue *q)
{
    uint64_t taken = atomic_load(&q->taken); /* first: `put` is never less */
    return atomic_load(&q->put) - taken;
}

/* Adds the line of queue_reserve(), for the worker. Returns the bytes that wait. */
static inline uint64_t queue_commit(struct queue *q, size_t bytes)
{
    uint64_t put = atomic_load_explicit(&q->put, memory_order_relaxed) + bytes;
    atomic_store_explicit(&q->put, put, memory_order_relaxed); /* before the writer can read it */
    ring_commit(&q->in->ring, bytes);
    return put - atomic_load_explicit(&q->taken, memory_order_relaxed);
}

/* Returns the oldest bytes in one piece, for the writer; empty if there are none. */
struct mk_str queue_peek(struct queue *q);

static inline void queue_drop(struct queue *q, size_t bytes)
{
    ring_drop(&q->out->ring, bytes);
    atomic_fetch_add(&q->taken, bytes);
}

#endif

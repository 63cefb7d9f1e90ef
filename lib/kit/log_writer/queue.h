// SPDX-License-Identifier: Apache-2.0
/*
 * The lines of one producer: a chain of rings that grows while the writer is behind.
 *
 *     the writer reads here        the producer writes here
 *       out ─► ring 256K ─► ring 512K ─► ring 1M ◄─ in
 *
 * Only the last ring gets lines. The writer frees the others when they are empty. After a burst the producer returns to
 * a ring of the first size. One thread on either side, no locks.
 */
#ifndef MK_LOG_WRITER_QUEUE_H
#define MK_LOG_WRITER_QUEUE_H

#include "ring.h"

enum { MK__LOG_QUEUE_FIRST_BYTES = 256 * 1024 };

struct mk__log_queue_ring {
    struct mk__log_ring ring;
    _Atomic(struct mk__log_queue_ring *) next; /* set once; then the producer writes to that one */
};

struct mk__log_queue {
    struct mk__log_queue_ring *in, *out;
    size_t first;           /* bytes of the first ring */
    _Atomic size_t max;     /* bytes of all rings together; set by the producer */
    _Atomic uint64_t put;   /* bytes written so far; by the producer */
    unsigned idle_count;    /* how often the producer found the large ring empty */
    _Atomic uint64_t taken; /* bytes read so far; by the writer */
    _Atomic size_t bytes;   /* of all rings */
};

/* Prepares a queue. `max`: bytes of all rings together, at least 32 KB. Returns 0 or -ENOMEM. */
int mk__log_queue_init(struct mk__log_queue *q, size_t max);
void mk__log_queue_release(struct mk__log_queue *q);

/*
 * Returns room for a line of at most `bytes`, for the producer; mk__log_queue_commit() follows. NULL: the queue is
 * full, or there is no memory. With `may_exceed` the queue may grow to twice its maximum.
 */
char *mk__log_queue_reserve(struct mk__log_queue *q, size_t bytes, bool may_exceed);

/* Returns the bytes that wait. Any thread. */
static inline uint64_t mk__log_queue_waiting(const struct mk__log_queue *q)
{
    uint64_t taken = atomic_load(&q->taken); /* first: `put` is never less */
    return atomic_load(&q->put) - taken;
}

/* Adds the line of mk__log_queue_reserve(), for the producer. Returns the bytes that wait. */
static inline uint64_t mk__log_queue_commit(struct mk__log_queue *q, size_t bytes)
{
    uint64_t put = atomic_load_explicit(&q->put, memory_order_relaxed) + bytes;
    atomic_store_explicit(&q->put, put, memory_order_relaxed); /* before the writer can read it */
    mk__log_ring_commit(&q->in->ring, bytes);
    return put - atomic_load_explicit(&q->taken, memory_order_relaxed);
}

/* Returns the oldest bytes in one piece, for the writer; empty if there are none. */
struct mk_str mk__log_queue_peek(struct mk__log_queue *q);

static inline void mk__log_queue_drop(struct mk__log_queue *q, size_t bytes)
{
    mk__log_ring_drop(&q->out->ring, bytes);
    atomic_fetch_add(&q->taken, bytes);
}

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef MK_LOG_WRITER_QUEUE_H
#define MK_LOG_WRITER_QUEUE_H

#include <monkey/base/str.h>

#include <assert.h>
#include <stdatomic.h>

/*
 * A ring of whole lines between two threads: the producer formats lines in it, the consumer writes them to a log. No
 * locks: the producer moves `head`, the consumer `tail`.
 *
 *     data   │ line line lin│e ...│ not used: a line needs its room in one piece │
 *             tail ──────────► head (skip_from)                                  size
 *
 * Both count bytes and never wrap; their position is the value modulo `size`. If the room up to the end is too small
 * for a line, the producer skips it, from `skip_from` to the end. There is at most one skip: the next one is not begun
 * before `tail` has passed it.
 */
struct mk__log_ring {
    char *data;
    size_t size;
    _Atomic uint64_t head, skip_from;
    _Alignas(64) _Atomic uint64_t tail;
};

/*
 * Returns the position of the oldest line, for the producer: after a skip, even if `tail` is still before it.
 * Otherwise an empty ring that has returned to its beginning would seem almost full.
 */
static inline uint64_t mk__log_ring_oldest(const struct mk__log_ring *r)
{
    uint64_t tail = atomic_load_explicit(&r->tail, memory_order_acquire);
    bool left_out = tail == atomic_load_explicit(&r->skip_from, memory_order_relaxed) && tail % r->size;
    return left_out ? tail - tail % r->size + r->size : tail;
}

/* Returns room for a line of `bytes`, for the producer; mk__log_ring_commit() follows. NULL: the ring is full. */
static inline char *mk__log_ring_reserve(struct mk__log_ring *r, size_t bytes)
{
    assert(bytes > 0);
    uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
    uint64_t tail = mk__log_ring_oldest(r);
    size_t at = head % r->size;
    /* an empty ring returns to its beginning, so that a quiet log uses its first pages only */
    uint64_t next = at + bytes > r->size || (head == tail && at >= bytes) ? head + (r->size - at) : head;
    if (next + bytes - tail > r->size)
        return NULL;
    if (next != head) {
        atomic_store_explicit(&r->skip_from, head, memory_order_relaxed);
        atomic_store_explicit(&r->head, next, memory_order_release);
    }
    return r->data + next % r->size;
}

/* Adds the line, `bytes` long. Returns the bytes in the ring. */
static inline size_t mk__log_ring_commit(struct mk__log_ring *r, size_t bytes)
{
    uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed) + bytes;
    assert(head - mk__log_ring_oldest(r) <= r->size);
    atomic_store(&r->head, head); /* sequentially consistent with what the consumer does before it sleeps */
    return (size_t)(head - mk__log_ring_oldest(r));
}

/* Returns the oldest bytes that are in one piece, for the consumer; empty if there are none. */
static inline struct mk_str mk__log_ring_peek(struct mk__log_ring *r)
{
    uint64_t head = atomic_load(&r->head), tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
    uint64_t skip = atomic_load_explicit(&r->skip_from, memory_order_relaxed), lap = tail - tail % r->size + r->size;
    if (tail == skip && tail < head && tail % r->size) {
        tail = lap;
        lap += r->size;
        atomic_store_explicit(&r->tail, tail, memory_order_release);
    }
    uint64_t end = head < lap ? head : lap;
    if (skip > tail && skip < end)
        end = skip;
    return mk_str(r->data + tail % r->size, (size_t)(end - tail));
}

static inline void mk__log_ring_drop(struct mk__log_ring *r, size_t bytes)
{
    uint64_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
    assert(tail + bytes <= atomic_load_explicit(&r->head, memory_order_relaxed));
    atomic_store_explicit(&r->tail, tail + bytes, memory_order_release);
}

/*
 * The lines of one producer: a chain of rings that grows while the writer is behind.
 *
 *     the writer reads here        the producer writes here
 *       out ─► ring 256K ─► ring 512K ─► ring 1M ◄─ in
 *
 * Only the last ring gets lines. The writer frees the others when they are empty. After a burst the producer returns to
 * a ring of the first size. One thread on either side, no locks.
 */
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

// SPDX-License-Identifier: Apache-2.0
/*
 * Whole lines on their way from one thread, which formats them straight into it, to another, which writes them out.
 * No locks: one side moves `head`, the other `tail`.
 *
 *     data   │ line line lin│e ...│ not used: a line needs its room in one piece │
 *             tail ──────────► head (skip_from)                                  size
 *
 * Both count bytes from the beginning of time; what they are modulo `size` is the place. Where the room up to the end
 * is too small for a line, the rest of the lap is left out, and `skip_from` says from where. There is one such place
 * at the most: the next one is not begun before `tail` has passed it.
 */
#ifndef LOGGER_RING_H
#define LOGGER_RING_H

#include <monkey/str.h>

#include <stdatomic.h>

struct ring {
    char *data;
    size_t size;
    _Atomic uint64_t head, skip_from;
    _Alignas(64) _Atomic uint64_t tail;
};

/*
 * Where the oldest line is, for one who puts in: what was left out holds none, though `tail` may still stand before it.
 * Otherwise an empty ring that begins anew would have little room until its lines are taken out.
 */
static inline uint64_t ring_oldest(const struct ring *r)
{
    uint64_t tail = atomic_load_explicit(&r->tail, memory_order_acquire);
    bool left_out = tail == atomic_load_explicit(&r->skip_from, memory_order_relaxed) && tail % r->size;
    return left_out ? tail - tail % r->size + r->size : tail;
}

/* One who puts in: room for a line of `bytes`, to be followed by ring_commit(); NULL while it is full. */
static inline char *ring_reserve(struct ring *r, size_t bytes)
{
    uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
    uint64_t tail = ring_oldest(r);
    size_t at = head % r->size;
    /* an empty one begins anew as soon as it may, so that a quiet log stays in its first pages */
    uint64_t next = at + bytes > r->size || (head == tail && at >= bytes) ? head + (r->size - at) : head;
    if (next + bytes - tail > r->size)
        return NULL;
    if (next != head) {
        atomic_store_explicit(&r->skip_from, head, memory_order_relaxed);
        atomic_store_explicit(&r->head, next, memory_order_release);
    }
    return r->data + next % r->size;
}

/* The line is there, `bytes` long. How much lies in the ring now? */
static inline size_t ring_commit(struct ring *r, size_t bytes)
{
    uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed) + bytes;
    atomic_store(&r->head, head); /* in one order with what the other side does before it sleeps */
    return (size_t)(head - ring_oldest(r));
}

/* One who takes out: what lies in one piece, from the oldest byte on; empty when there is nothing. */
static inline struct mk_str ring_peek(struct ring *r)
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

static inline void ring_drop(struct ring *r, size_t bytes)
{
    uint64_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
    atomic_store_explicit(&r->tail, tail + bytes, memory_order_release);
}

#endif

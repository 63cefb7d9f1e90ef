// SPDX-License-Identifier: Apache-2.0
/*
 * The memory of the counters (<monkey/counters.h>): one shared mapping (memfd), which the next process can go on with.
 *
 *     head      names: families (plugin, name, help, kind), counters (family, labels, slot), a heap of strings
 *     block 0   the cells of one thread
 *     block 1   those of another one ...
 *
 * A counter has the same slot in all blocks: one cell, or for a histogram one for the sum and one for each bucket. Only
 * the thread that has claimed a block writes to it; each process has one block more, which its other threads share with
 * atomic additions. A block that its thread gives back keeps its values, and the next thread goes on adding to them, so
 * that the sum over all blocks is exact at all times. Pages that nothing has touched take no memory.
 */
#ifndef MK_BASE_COUNTERS_H
#define MK_BASE_COUNTERS_H

#include <monkey/counters.h>

#include <assert.h>
#include <stdatomic.h>

struct mk_counter {
    uint32_t slot;
};

/* The cells of one thread, by slot. */
typedef _Atomic uint64_t mk__cell;

/*
 * Opens the memory for a server, or counts one more user of it. Returns 0 or -errno: counters then count nothing.
 * mk__counters_close() releases it with the last user, when no thread counts any more.
 */
int mk__counters_open(void);
void mk__counters_close(void);

/* Claims a block for a thread. NULL: none is free, or there is no memory; count with NULL then. Any thread. */
mk__cell *mk__counters_claim(void);
/* Gives the block back, with its values; levels become 0. Does nothing with NULL. In the thread that wrote to it. */
void mk__counters_give_back(mk__cell *cells);

/* Adds with an atomic operation, in a thread that has no block. */
void mk__counters_add_shared(uint32_t slot, int64_t n);

/* Adds to a cell of the calling thread. */
static inline void mk__counters_add_own(mk__cell *cells, uint32_t slot, int64_t n)
{
    uint64_t before = atomic_load_explicit(&cells[slot], memory_order_relaxed);
    atomic_store_explicit(&cells[slot], before + (uint64_t)n, memory_order_relaxed);
}

/* The same; `cells` may be NULL. */
static inline void mk__counters_add_to(mk__cell *cells, uint32_t slot, int64_t n)
{
    if (cells)
        mk__counters_add_own(cells, slot, n);
    else
        mk__counters_add_shared(slot, n);
}

static inline void mk__counters_add(mk__cell *cells, const struct mk_counter *counter, int64_t n)
{
    assert(counter);
    mk__counters_add_to(cells, counter->slot, n);
}

/* Counts a duration in a histogram. */
static inline void mk__counters_observe(mk__cell *cells, const struct mk_counter *counter, uint64_t us)
{
    assert(counter);
    mk__counters_add_to(cells, counter->slot, (int64_t)us);
    mk__counters_add_to(cells, counter->slot + 1 + mk_counter_bucket(us), 1);
}

#endif

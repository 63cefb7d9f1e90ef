// SPDX-License-Identifier: Apache-2.0
/*
 * Adding to counters (<monkey/counters.h>), whose memory is that of base/counters_memory.h.
 */
#ifndef MK_BASE_COUNTERS_H
#define MK_BASE_COUNTERS_H

#include "base/counters_memory.h"

/* Is called before all counters are read, to add what is counted elsewhere; NULL: nothing is. Any thread. */
extern void (*_Atomic mk__counters_before_read)(void);

/*
 * Ends a hold of a counter of the server (mk_counter_hold()), which is shown on: while it is held its place is not used
 * for others. Any thread.
 */
void mk__counters_put(const struct mk_counter *counter);
/* Hides the counters of plugins that are held as a rule and that nothing holds: a former process has left them. */
void mk__counters_hide_unheld(void);
/*
 * Lets the places of the server's counters with a label `label` that are not held be used again, once there is no room.
 * What they have counted goes to a counter whose label has the value "(removed)".
 */
void mk__counters_retire_unused(const char *label);

/* Adds to a cell of the calling thread; `cells` NULL: it has none, and adds to one that threads share. */
static inline void mk__counters_add_to(mk__cell *cells, uint32_t slot, int64_t n)
{
    if (!cells) {
        mk__counters_memory_add_shared(slot, n);
        return;
    }
    uint64_t before = atomic_load_explicit(&cells[slot], memory_order_relaxed);
    atomic_store_explicit(&cells[slot], before + (uint64_t)n, memory_order_relaxed);
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

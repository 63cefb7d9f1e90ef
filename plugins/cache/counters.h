// SPDX-License-Identifier: Apache-2.0
/*
 * What the cache counts.
 */
#ifndef CACHE_COUNTERS_H
#define CACHE_COUNTERS_H

#include <monkey/counters.h>
#include <monkey/store.h>

#include "entry.h"

enum cache_count {
    COUNT_HITS,        /* answered from an entry */
    COUNT_MISSES,      /* no entry, or one that was not valid any more */
    COUNT_REVALIDATED, /* entries that were revalidated and had not changed */
    COUNT_WAITS,       /* lookups that had to wait for a disk */
    CACHE_COUNTS,
};

struct cache_counters {
    const struct mk_counter *all[CACHE_COUNTS];
    const struct mk_counter *evicted[ENTRY_KINDS], *entries[ENTRY_KINDS], *bytes[ENTRY_KINDS];
};

/* Opens the counters; opening them again changes nothing. */
void counters_open(struct cache_counters *c);
/* Counts one event. In the thread of the worker. */
void counters_add(const struct cache_counters *c, enum cache_count count, const struct mk_worker *worker);
/* Adds what has changed in the store since `last`, which it updates. One thread at a time. */
void counters_add_store(const struct cache_counters *c, struct mk_store *store, struct mk_store_stats *last);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * What the cache counts.
 */
#ifndef CACHE_COUNTERS_H
#define CACHE_COUNTERS_H

#include <monkey/counters.h>
#include <monkey/store.h>

#include "entry.h"
#include "notify.h"

enum cache_count {
    COUNT_HITS,        /* answered from an entry */
    COUNT_MISSES,      /* no entry, or one that was not valid any more */
    COUNT_REVALIDATED, /* entries that were revalidated and had not changed */
    COUNT_WAITS,       /* lookups that had to wait for a disk */
    COUNT_EVICTED,     /* and after it, of each kind of entry; the same for the next two */
    COUNT_ENTRIES = COUNT_EVICTED + ENTRY_KINDS,
    COUNT_BYTES = COUNT_ENTRIES + ENTRY_KINDS,
    COUNT_FOLDERS = COUNT_BYTES + ENTRY_KINDS, /* that are watched */
    COUNT_OVERFLOWS,                           /* of the queue of their changes */
    CACHE_COUNTS,
};

/* In the state of the process: a plugin without static variables needs a page less. */
struct cache_counters {
    const struct mk_counter *counters[CACHE_COUNTS];
};

/* Opens the counters; opening them again changes nothing. */
void cache_counters_open(struct cache_counters *c);
/* Counts one event. In the thread of the worker. */
void cache_counters_add(const struct cache_counters *c, enum cache_count count, const struct mk_worker *worker);

struct cache_notify_counts {
    uint64_t folders, overflows;
};

/* Adds what has changed since `last`, which it updates. One thread at a time. */
void cache_counters_add_notify(const struct cache_counters *c, const struct notify *notify,
                               struct cache_notify_counts *last);
/* Adds what has changed in the store since `last`, which it updates. One thread at a time. */
void cache_counters_add_store(const struct cache_counters *c, struct mk_store *store, struct mk_store_stats *last);

#endif

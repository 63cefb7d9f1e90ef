// SPDX-License-Identifier: Apache-2.0
/*
 * The counters of counters.h.
 */
#include "counters.h"

#include <assert.h>

static const struct mk_counter_info hits = {"cache", "hits", "names that were answered from the cache", MK_COUNTER_SUM};
static const struct mk_counter_info misses = {"cache", "misses", "names that were opened", MK_COUNTER_SUM};
static const struct mk_counter_info revalidated = {"cache", "revalidated",
                                                   "entries that were revalidated and had not changed", MK_COUNTER_SUM};
static const struct mk_counter_info waits = {"cache", "waits",
                                             "names that could not be opened without waiting for a disk",
                                             MK_COUNTER_SUM};
static const struct mk_counter_info evicted = {"cache", "evicted", "entries that were evicted, by kind",
                                               MK_COUNTER_SUM};
static const struct mk_counter_info entries = {"cache", "entries", "entries, by kind", MK_COUNTER_LEVEL};
static const struct mk_counter_info folders = {"cache", "watched_folders", "folders whose changes the kernel reports",
                                               MK_COUNTER_LEVEL};
static const struct mk_counter_info overflows = {"cache", "overflows",
                                                 "how often the kernel had no room for reports of changes",
                                                 MK_COUNTER_SUM};
static const struct mk_counter_info bytes = {"cache", "bytes", "memory of entries, by kind", MK_COUNTER_LEVEL};

#define ROWS(info, first) \
    [(first) + ENTRY_BODY] = {&(info), {"kind", "body"}}, \
               [(first) + ENTRY_DESCRIPTOR] = {&(info), {"kind", "descriptor"}}, \
               [(first) + ENTRY_FOLDER] = {&(info), {"kind", "folder"}}, \
               [(first) + ENTRY_MISSING] = {&(info), {"kind", "missing"}}

static const struct mk_counter_row rows[CACHE_COUNTS] = {
    [COUNT_HITS] = {&hits, {0}},   [COUNT_MISSES] = {&misses, {0}},   [COUNT_REVALIDATED] = {&revalidated, {0}},
    [COUNT_WAITS] = {&waits, {0}}, ROWS(evicted, COUNT_EVICTED),      ROWS(entries, COUNT_ENTRIES),
    ROWS(bytes, COUNT_BYTES),      [COUNT_FOLDERS] = {&folders, {0}}, [COUNT_OVERFLOWS] = {&overflows, {0}},
};

void cache_counters_open(struct cache_counters *c)
{
    mk_counters_open(rows, CACHE_COUNTS, c->counters);
}

void cache_counters_add(const struct cache_counters *c, enum cache_count count, const struct mk_worker *worker)
{
    assert(count < CACHE_COUNTS);
    mk_counter_add(c->counters[count], worker, 1);
}

/* A counter that does not change is not written: its memory may not be there yet. */
static void add_change(const struct mk_counter *counter, uint64_t now, uint64_t last)
{
    if (now != last)
        mk_counter_add(counter, NULL, (int64_t)(now - last));
}

void cache_counters_add_notify(const struct cache_counters *c, const struct notify *notify,
                               struct cache_notify_counts *last)
{
    struct cache_notify_counts now = {notify->folders, notify->overflows};
    add_change(c->counters[COUNT_FOLDERS], now.folders, last->folders);
    add_change(c->counters[COUNT_OVERFLOWS], now.overflows, last->overflows);
    *last = now;
}

void cache_counters_add_store(const struct cache_counters *c, struct mk_store *store, struct mk_store_stats *last)
{
    for (unsigned kind = 0; kind < ENTRY_KINDS; kind++) {
        struct mk_store_stats now;
        mk_store_get_stats(store, kind, &now);
        add_change(c->counters[COUNT_EVICTED + kind], now.evicted, last[kind].evicted);
        add_change(c->counters[COUNT_ENTRIES + kind], now.items, last[kind].items);
        add_change(c->counters[COUNT_BYTES + kind], now.bytes, last[kind].bytes);
        last[kind] = now;
    }
}

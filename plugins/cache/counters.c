// SPDX-License-Identifier: Apache-2.0
/*
 * The counters of counters.h.
 */
#include "counters.h"

#include <assert.h>

static const struct mk_counter_info infos[CACHE_COUNTS] = {
    [COUNT_HITS] = {"cache", "hits", "names that were answered from the cache", MK_COUNTER_SUM},
    [COUNT_MISSES] = {"cache", "misses", "names that were opened", MK_COUNTER_SUM},
    [COUNT_REVALIDATED] = {"cache", "revalidated", "entries that were revalidated and had not changed", MK_COUNTER_SUM},
    [COUNT_WAITS] = {"cache", "waits", "names that could not be opened without waiting for a disk", MK_COUNTER_SUM},
};

static const struct mk_counter_info evicted = {"cache", "evicted", "entries that were evicted, by kind",
                                               MK_COUNTER_SUM};
static const struct mk_counter_info entries = {"cache", "entries", "entries, by kind", MK_COUNTER_LEVEL};
static const struct mk_counter_info bytes = {"cache", "bytes", "memory of entries, by kind", MK_COUNTER_LEVEL};

static const char *const kinds[ENTRY_KINDS] = {
    [ENTRY_BODY] = "body", [ENTRY_DESCRIPTOR] = "descriptor", [ENTRY_FOLDER] = "folder", [ENTRY_MISSING] = "missing"};

void counters_open(struct cache_counters *c)
{
    for (unsigned i = 0; i < CACHE_COUNTS; i++)
        c->all[i] = mk_counter_open(&infos[i], NULL, 0);
    for (unsigned kind = 0; kind < ENTRY_KINDS; kind++) {
        struct mk_counter_label label = {"kind", mk_str_c(kinds[kind])};
        c->evicted[kind] = mk_counter_open(&evicted, &label, 1);
        c->entries[kind] = mk_counter_open(&entries, &label, 1);
        c->bytes[kind] = mk_counter_open(&bytes, &label, 1);
    }
}

void counters_add(const struct cache_counters *c, enum cache_count count, const struct mk_worker *worker)
{
    assert(count < CACHE_COUNTS && c->all[count]);
    mk_counter_add(c->all[count], worker, 1);
}

/* A counter that does not change is not written: its memory may not be there yet. */
static void add_change(const struct mk_counter *counter, uint64_t now, uint64_t last)
{
    if (now != last)
        mk_counter_add(counter, NULL, (int64_t)(now - last));
}

void counters_add_store(const struct cache_counters *c, struct mk_store *store, struct mk_store_stats *last)
{
    for (unsigned kind = 0; kind < ENTRY_KINDS; kind++) {
        struct mk_store_stats now;
        mk_store_get_stats(store, kind, &now);
        add_change(c->evicted[kind], now.evicted, last[kind].evicted);
        add_change(c->entries[kind], now.items, last[kind].items);
        add_change(c->bytes[kind], now.bytes, last[kind].bytes);
        last[kind] = now;
    }
}

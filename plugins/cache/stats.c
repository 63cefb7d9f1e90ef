// SPDX-License-Identifier: Apache-2.0
#include "worker.h"

#include <monkey/kit/json.h>

#include <assert.h>
#include <stdio.h>

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

enum { EVENT_BYTES_MAX = 4096 };

static void write_sums(const struct cache_counters *c, struct mk_buf *out)
{
    static const struct {
        const char *key;
        enum cache_count count;
    } sums[] = {{"hits", COUNT_HITS},
                {"misses", COUNT_MISSES},
                {"revalidated", COUNT_REVALIDATED},
                {"disk_waits", COUNT_WAITS}};
    for (unsigned i = 0; i < MK_COUNT_OF(sums); i++)
        mk_json_number(out, sums[i].key, mk_counter_read(c->counters[sums[i].count]));
}

static void write_notify(struct mk_buf *out, const struct notify *n)
{
    mk_json_number(out, "watched_folders", n->folders);
    mk_json_number(out, "overflows", (int64_t)n->overflows);
}

static void write_kind(struct mk_buf *out, const struct mk_store_stats *stats)
{
    mk_json_number(out, "entries", (int64_t)stats->items);
    mk_json_number(out, "bytes", (int64_t)stats->bytes);
    mk_json_number(out, "evicted", (int64_t)stats->evicted);
    mk_json_number(out, "refused", (int64_t)stats->refused);
}

void stats_write(struct cache *cache, struct mk_buf *out)
{
    const struct cache_counters *c = &cache->counters;
    int64_t found = mk_counter_read(c->counters[COUNT_HITS]), missed = mk_counter_read(c->counters[COUNT_MISSES]);
    write_sums(c, out);
    if (found + missed > 0)
        mk_json_real(out, "hit_ratio", (double)found / (double)(found + missed));
    else
        mk_json_null(out, "hit_ratio");
    mk_json_number(out, "memory_bytes", (int64_t)mk_store_bytes(cache->store));
    mk_json_number(out, "memory_max_bytes", (int64_t)cache->bytes_max);
    mk_json_number(out, "descriptors_max", (int64_t)cache->descriptors_max);
    write_notify(out, &cache->notify);
    mk_json_open(out, "kinds", '{');
    for (unsigned kind = 0; kind < ENTRY_KINDS; kind++) {
        struct mk_store_stats stats;
        mk_store_get_stats(cache->store, kind, &stats);
        mk_json_open(out, entry_kind_name(kind), '{');
        write_kind(out, &stats);
        mk_json_close(out, '}');
    }
    mk_json_close(out, '}');
}

static void write_flat_kind(struct mk_buf *out, const char *name, const struct mk_store_stats *stats)
{
    const struct {
        const char *unit;
        uint64_t value;
    } figures[] = {{"entries", stats->items}, {"evicted", stats->evicted}, {"bytes", stats->bytes}};
    for (unsigned i = 0; i < MK_COUNT_OF(figures); i++) {
        char key[64];
        snprintf(key, sizeof(key), "%s_%s", name, figures[i].unit);
        mk_json_number(out, key, (int64_t)figures[i].value);
    }
}

void stats_write_flat(struct cache *cache, struct mk_buf *out)
{
    write_sums(&cache->counters, out);
    mk_json_number(out, "memory_bytes", (int64_t)mk_store_bytes(cache->store));
    write_notify(out, &cache->notify);
    for (unsigned kind = 0; kind < ENTRY_KINDS; kind++) {
        struct mk_store_stats stats;
        mk_store_get_stats(cache->store, kind, &stats);
        write_flat_kind(out, entry_kind_name(kind), &stats);
    }
}

/* ── events ── */

static void make_event(struct mk_event_streams *streams)
{
    struct cache_worker *w = MK_CONTAINER_OF(streams, struct cache_worker, streams);
    struct mk_buf text;
    mk_buf_init(&text, EVENT_BYTES_MAX);
    mk_buf_adds(&text, MK_STR("data: "));
    mk_json_open(&text, NULL, '{');
    stats_write(w->cache, &text);
    mk_json_close(&text, '}');
    mk_buf_adds(&text, MK_STR("\n\n"));
    mk_event_streams_send(streams, text);
}

const struct mk_event_maker stats_events = {.make = make_event};

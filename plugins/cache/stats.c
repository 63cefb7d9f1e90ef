// SPDX-License-Identifier: Apache-2.0
/*
 * The figures of stats.h.
 */
#include "stats.h"

#include <monkey/json.h>

#include <stdio.h>

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
    int64_t hits = mk_counter_read(c->counters[COUNT_HITS]), misses = mk_counter_read(c->counters[COUNT_MISSES]);
    write_sums(c, out);
    if (hits + misses > 0)
        mk_json_real(out, "hit_ratio", (double)hits / (double)(hits + misses));
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

// SPDX-License-Identifier: Apache-2.0
/*
 * The command `cache` of commands.h: the figures of the cache, and clearing it.
 */
#include "commands.h"

#include "worker.h"

#include <monkey/json.h>
#include <monkey/log.h>
#include <monkey/plugin.h>

#include <inttypes.h>
#include <stdio.h>

extern const struct mk_plugin mk_plugin_cache;

static const char *const kind_names[ENTRY_KINDS] = {
    [ENTRY_BODY] = "body", [ENTRY_DESCRIPTOR] = "descriptor", [ENTRY_FOLDER] = "folder", [ENTRY_MISSING] = "missing"};

static struct mk_store *get_store(const struct mk_command_call *call)
{
    const struct cache *cache = mk_generation_plugin_state(mk_worker_generation(call->worker), &mk_plugin_cache);
    return cache->store;
}

static void add_sums(struct mk_buf *row)
{
    static const struct {
        const char *key;
        enum cache_count count;
    } sums[] = {{"hits", COUNT_HITS},
                {"misses", COUNT_MISSES},
                {"revalidated", COUNT_REVALIDATED},
                {"disk_waits", COUNT_WAITS}};
    for (unsigned i = 0; i < MK_COUNT_OF(sums); i++)
        mk_json_number(row, sums[i].key, mk_counter_read(cache_counters[sums[i].count]));
}

static void add_kind(struct mk_buf *row, const char *name, const struct mk_store_stats *stats)
{
    const struct {
        const char *unit;
        uint64_t value;
    } figures[] = {{"entries", stats->items}, {"evicted", stats->evicted}, {"bytes", stats->bytes}};
    for (unsigned i = 0; i < MK_COUNT_OF(figures); i++) {
        char key[64];
        snprintf(key, sizeof(key), "%s_%s", name, figures[i].unit);
        mk_json_number(row, key, (int64_t)figures[i].value);
    }
}

static int show_figures(struct mk_command_call *call)
{
    struct mk_store *store = get_store(call);
    struct mk_buf *row = mk_command_begin_row(call);
    add_sums(row);
    mk_json_number(row, "memory_bytes", (int64_t)mk_store_bytes(store));
    for (unsigned kind = 0; kind < ENTRY_KINDS; kind++) {
        struct mk_store_stats stats;
        mk_store_get_stats(store, kind, &stats);
        add_kind(row, kind_names[kind], &stats);
    }
    mk_command_end_row(call);
    return 0;
}

static int clear_cache(struct mk_command_call *call)
{
    uint64_t evicted = 0;
    for (unsigned kind = 0; kind < ENTRY_KINDS; kind++)
        evicted += mk_store_evict(get_store(call), kind, UINT64_MAX);
    mk_log_info("cache: the shell (%s) has cleared it: %" PRIu64 " entries", call->by, evicted);
    mk_json_number(mk_command_begin_row(call), "evicted", (int64_t)evicted);
    mk_command_end_row(call);
    return 0;
}

static int run_cache(struct mk_command_call *call)
{
    return call->n_args ? clear_cache(call) : show_figures(call);
}

static const char *const words[] = {"clear", NULL};

const struct mk_command cache_commands[] = {
    {.name = "cache",
     .arguments = "[clear]",
     .help = "what the file cache holds, and how often it has answered; clear evicts all of it",
     .args_max = 1,
     .view = MK_COMMAND_LIST,
     .run = run_cache,
     .words = words},
    {0},
};

// SPDX-License-Identifier: Apache-2.0
/*
 * The command `cache` of the shell: the figures of the cache, its entries, and changes.
 */
#include "calls.h"
#include "worker.h"

#include <monkey/base/escape.h>
#include <monkey/kit/json.h>
#include <monkey/log.h>

#include <errno.h>
#include <inttypes.h>

extern const struct mk_plugin mk_plugin_cache;

enum { SHOWN_ENTRIES = 20, ARG_BYTES_MAX = 128 };

static struct cache *get_cache(const struct mk_command_call *call)
{
    return mk_generation_plugin_state(mk_worker_generation(call->worker), &mk_plugin_cache);
}

/* ── figures ── */

static int show_figures(struct mk_command_call *call)
{
    if (call->n_args > 1)
        return mk_command_refuse(call, "cache stats takes no arguments");
    stats_write_flat(get_cache(call), mk_command_begin_row(call));
    mk_command_end_row(call);
    return 0;
}

static int clear_cache(struct mk_command_call *call)
{
    uint64_t evicted = 0;
    if (call->n_args > 1)
        return mk_command_refuse(call, "cache clear takes no arguments; cache reset HOST PATH removes one file");
    for (unsigned kind = 0; kind < ENTRY_KINDS; kind++)
        evicted += mk_store_evict(get_cache(call)->store, kind, UINT64_MAX);
    mk_log_info("cache: the shell (%s) has cleared it: %" PRIu64 " entries", call->by, evicted);
    mk_json_number(mk_command_begin_row(call), "evicted", (int64_t)evicted);
    mk_command_end_row(call);
    return 0;
}

/* ── hosts ── */

/* Returns the host that the second argument names, or the first one without it; NULL: there is none. */
static const struct mk_host *find_host(const struct mk_command_call *call)
{
    const struct mk_host *host = mk_generation_first_host(mk_worker_generation(call->worker));
    while (call->n_args > 1 && host && !mk_host_has_name(host, call->args[1]))
        host = mk_host_next(host);
    return host;
}

static int refuse_host(struct mk_command_call *call)
{
    return mk_command_refuse(call, "there is no host %.*s", MK_STR_ARG(mk_str_truncate(call->args[1], ARG_BYTES_MAX)));
}

/* Reads the folders of the host. Returns 0, or as mk_command_refuse(). */
static int read_places(struct mk_command_call *call, struct places *places)
{
    const struct mk_host *host = find_host(call);
    if (!host)
        return refuse_host(call);
    int err = places_read(places, host);
    return err < 0 ? mk_command_refuse(call, "the files of the host cannot be looked at: %s", strerror(-err)) : 0;
}

/* Reads the path of the third argument. Returns 0, or as mk_command_refuse(). */
static int read_path(struct mk_command_call *call, char path[PATH_BYTES])
{
    ssize_t n = mk_path_normalize(call->args[2], path, PATH_BYTES);
    return n > 0 ? 0
                 : mk_command_refuse(call, "%.*s is not a path: it begins with a slash and is percent-encoded",
                                     MK_STR_ARG(mk_str_truncate(call->args[2], ARG_BYTES_MAX)));
}

/* ── entries ── */

static void show_entry(const struct scan_row *row, void *ctx)
{
    struct mk_command_call *call = ctx;
    struct mk_buf *out = mk_command_begin_row(call);
    scan_write_row(row, out);
    mk_command_end_row(call);
}

/* One look at all entries, in the thread of the worker: 10 ms for 100,000. */
static int list_entries(struct mk_command_call *call)
{
    struct places places;
    struct scan_query query = {.sort = SCAN_HITS,
                               .limit = SHOWN_ENTRIES,
                               .prefix = call->n_args > 2 ? call->args[2] : MK_STR(""),
                               .now_ms = mk_loop_now_ms(mk_worker_loop(call->worker))};
    int err = call->n_args > 3 ? mk_command_refuse(call, "cache entries takes a host and the beginning of paths")
                               : read_places(call, &places);
    if (err < 0)
        return err;
    err = scan_each(get_cache(call), &places, &query, show_entry, call);
    places_release(&places);
    return err < 0 ? mk_command_refuse(call, "there is no memory for the entries") : 0;
}

/* ── changes ── */

static int remove_entries(struct mk_command_call *call)
{
    struct places places;
    char path[PATH_BYTES] = "";
    struct mk_str word = call->n_args > 2 ? call->args[2] : MK_STR("");
    struct scan_target target = {.prefix = MK_STR("/")};
    if (call->n_args != 2 && call->n_args != 3)
        return mk_command_refuse(call,
                                 "cache reset takes a host, and a path or the beginning of paths with * behind it");
    if (word.len && word.p[word.len - 1] == '*')
        target.prefix = mk_str(word.p, word.len - 1);
    else if (word.len && read_path(call, path) < 0)
        return -EINVAL;
    target.path = mk_str_c(path);
    int err = read_places(call, &places);
    if (err < 0)
        return err;
    uint64_t n = scan_remove(get_cache(call), &places, &target);
    places_release(&places);
    mk_log_info("cache: the shell (%s) has removed %" PRIu64 " entries", call->by, n);
    mk_json_number(mk_command_begin_row(call), "removed", (int64_t)n);
    mk_command_end_row(call);
    return 0;
}

/* The files are loaded by a disk thread, which writes to the log at its end. */
static int start_adding(struct mk_command_call *call, const struct mk_host *host, struct mk_str path)
{
    struct cache_worker *w = mk_worker_state(call->worker, &mk_plugin_cache);
    struct call *c = call_new_for(w, host);
    if (!c)
        return mk_command_refuse(call, "too many calls are under way; try again in a moment");
    int err = preload_init(&c->preload, c->cache, host);
    c->has_preload = true;
    if (path.p[path.len - 1] == '/')
        memcpy(c->folder, path.p, path.len + 1);
    else
        mk_path_encode(&c->preload.list, path);
    c->preload.refresh = !c->folder[0];
    if (err == 0 && !c->preload.list.err)
        return call_start(c, call_add) < 0 ? mk_command_refuse(call, "no thread can be started for it now") : 0;
    call_free(c);
    return mk_command_refuse(call, "the files of the host cannot be loaded");
}

static int add_files(struct mk_command_call *call)
{
    char path[PATH_BYTES];
    if (call->n_args != 3)
        return mk_command_refuse(call,
                                 "cache add takes a host, and the path of a file or, with a slash at its end, of a "
                                 "folder");
    const struct mk_host *host = find_host(call);
    if (!host)
        return refuse_host(call);
    int err = read_path(call, path);
    if (err == 0)
        err = start_adding(call, host, mk_str_c(path));
    if (err < 0)
        return err;
    mk_json_str(mk_command_begin_row(call), "adding", mk_str_c(path));
    mk_command_end_row(call);
    return 0;
}

/* ── the command ── */

static const struct {
    const char *name;
    int (*run)(struct mk_command_call *call);
} actions[] = {
    {"stats", show_figures}, {"entries", list_entries}, {"reset", remove_entries},
    {"add", add_files},      {"clear", clear_cache},
};

static int run_cache(struct mk_command_call *call)
{
    size_t i = 0;
    if (!call->n_args)
        return show_figures(call);
    while (i < MK_COUNT_OF(actions) && !mk_str_eq(call->args[0], mk_str_c(actions[i].name)))
        i++;
    if (i == MK_COUNT_OF(actions))
        return mk_command_refuse(call, "behind cache is expected: stats, entries, reset, add or clear");
    return actions[i].run(call);
}

static void complete_cache(struct mk_command_call *call)
{
    const struct mk_host *host = mk_generation_first_host(mk_worker_generation(call->worker));
    for (size_t i = 0; !call->n_args && i < MK_COUNT_OF(actions); i++)
        mk_command_offer(call, mk_str_c(actions[i].name));
    for (; call->n_args == 1 && host; host = mk_host_next(host))
        mk_command_offer(call, mk_host_name(host, 0));
}

const struct mk_command cache_commands[] = {
    {.name = "cache",
     .arguments = "[stats|clear|entries [HOST [PREFIX]]|reset HOST [PATH|PREFIX*]|add HOST PATH]",
     .help = "what the file cache holds; its entries with the most hits; removes entries; loads files",
     .args_max = 3,
     .view = MK_COMMAND_LIST,
     .run = run_cache,
     .complete = complete_cache},
    {0},
};

// SPDX-License-Identifier: Apache-2.0
/*
 * cache: keeps what names below document roots are, for the plugins that serve files: small files in memory, larger
 * ones open, folders, and names that do not exist (<monkey/file_cache.h>). One table for all workers, which outlives
 * reloads; load.c makes entries, check.c revalidates them, sweep.c closes descriptors that are not used.
 */
#include <monkey/epoch.h>
#include <monkey/inspect.h>

#include "check.h"
#include "commands.h"
#include "load.h"
#include "sweep.h"

#include <errno.h>

extern const struct mk_plugin mk_plugin_cache;

/* ── limits ── */

/* A limit of 0, which the store does not have, evicts all. */
static void set_items_max(struct cache *cache, enum entry_kind kind, uint64_t max)
{
    mk_store_set_items_max(cache->store, kind, max ? max : 1);
    if (!max)
        mk_store_evict(cache->store, kind, UINT64_MAX);
}

static void set_limits(struct cache *cache, const struct cache_conf *conf)
{
    mk_store_set_limit(cache->store, conf->bytes_max);
    cache->body_bytes_max = conf->body_bytes_max;
    cache->descriptors_wanted = (uint64_t)conf->descriptors_max;
    sweep_limit_descriptors(cache);
    cache->missing_max = (uint64_t)conf->missing_max;
    set_items_max(cache, ENTRY_DESCRIPTOR, cache->descriptors_max);
    set_items_max(cache, ENTRY_MISSING, cache->missing_max);
}

/*
 * Puts the limits of the worker's generation in force, with its first request: before that it may still be rejected. A
 * worker of an older generation may have its first request when those of a later one are in force: they stay.
 */
static void adopt_limits(struct cache_worker *w)
{
    struct cache *cache = w->cache;
    const struct mk_generation *g = mk_worker_generation(w->worker);
    uint64_t number = (uintptr_t)mk_generation_state(g, &mk_plugin_cache);
    w->has_limits = true;
    pthread_mutex_lock(&cache->limits_lock);
    if (number > cache->limits_number) {
        cache->limits_number = number;
        set_limits(cache, mk_generation_conf(g, &directives_sections[DIRECTIVES_SERVER]));
    }
    pthread_mutex_unlock(&cache->limits_lock);
}

/* ── lookups ── */

/* Returns the policy of a path; `ret_rule`: the section that it comes from, or NULL. */
static const struct files_policy *match_policy(const struct mk_host *host, struct mk_str path, const void **ret_rule)
{
    static const struct files_policy off = {.mode = FILES_OFF};
    *ret_rule = NULL;
    int r = mk_host_conf_match(host, &directives_sections[DIRECTIVES_RULES], offsetof(struct cache_rule, match), path,
                               ret_rule);
    if (r < 0) /* a regular expression failed on the path */
        return &off;
    const struct cache_rule *rule = *ret_rule;
    return rule ? &rule->files : &directives_default_policy;
}

static const struct files_policy *find_policy(const struct mk_request *req)
{
    const void *rule;
    if (!mk_request_host_state(req, &mk_plugin_cache)) /* the host has no sections */
        return &directives_default_policy;
    return match_policy(mk_request_host_conf(req), mk_request_path(req), &rule);
}

static struct mk_named_file open_name(struct mk_request *req, const struct mk_file_name *name)
{
    struct cache_worker *w = mk_worker_state(mk_request_worker(req), &mk_plugin_cache);
    MK_UNINITIALIZED struct cache_lookup l;
    l.worker = w;
    l.req = req;
    l.name = name;
    if (!w->has_limits)
        adopt_limits(w);
    l.policy = find_policy(req);
    l.now_ms = mk_loop_now_ms(mk_request_loop(req));
    bool keep = l.policy->mode != FILES_OFF && entry_make_key(&l.key, w->cache->store, name, mk_request_mime_id(req));
    struct mk_item *item = keep ? mk_store_find(w->cache->store, l.key.hash, &l.key.bytes, l.key.len) : NULL;
    enum check_result r = item ? check_entry(&l, item) : CHECK_CHANGED;
    if (r == CHECK_VALID) {
        cache_counters_add(COUNT_HITS, w->worker);
        return load_describe(&l, item);
    }
    if (r == CHECK_WAITS || r == CHECK_SHORT)
        return entry_make_missing(r == CHECK_WAITS ? EAGAIN : EMFILE);
    cache_counters_add(COUNT_MISSES, w->worker);
    return load_name(&l, keep);
}

static void forget_turn(struct mk_request *req)
{
    struct cache_worker *w = mk_worker_state(mk_request_worker(req), &mk_plugin_cache);
    w->turn_item = NULL;
}

static const struct mk_file_cache file_cache = {.open = open_name, .forget_turn = forget_turn};

/* ── the process ── */

static const struct mk_store_kind kinds[ENTRY_KINDS] = {
    [ENTRY_BODY] = {.name = "body"},
    [ENTRY_DESCRIPTOR] = {.name = "descriptor", .items_max = 1, .release = entry_release, .share = 5},
    [ENTRY_FOLDER] = {.name = "folder"},
    [ENTRY_MISSING] = {.name = "missing", .items_max = 1, .share = 10},
};

static int start_process(void **ret_state)
{
    struct cache *cache = mk_account_alloc(NULL, sizeof(*cache));
    if (!cache)
        return -ENOMEM;
    memset(cache, 0, sizeof(*cache));
    int err =
        mk_store_new(&(struct mk_store_conf){.bytes_max = MK_STORE_BYTES_MIN, .kinds = kinds, .n_kinds = ENTRY_KINDS},
                     &cache->store);
    if (err < 0) {
        mk_account_free(NULL, cache, sizeof(*cache));
        return err;
    }
    pthread_mutex_init(&cache->limits_lock, NULL);
    pthread_mutex_init(&cache->stats_lock, NULL);
    cache_counters_open();
    *ret_state = cache;
    return 0;
}

static void stop_process(void *state)
{
    struct cache *cache = state;
    mk_store_free(cache->store);
    for (unsigned kind = 0; kind < ENTRY_KINDS; kind++) {
        mk_counter_add(cache_counters[COUNT_ENTRIES + kind], NULL, -(int64_t)cache->counted[kind].items);
        mk_counter_add(cache_counters[COUNT_BYTES + kind], NULL, -(int64_t)cache->counted[kind].bytes);
    }
    pthread_mutex_destroy(&cache->limits_lock);
    pthread_mutex_destroy(&cache->stats_lock);
    mk_account_free(NULL, cache, sizeof(*cache));
}

static void give_descriptors_back(void *state)
{
    sweep_evict_descriptors(state);
}

/* ── generations, hosts and workers ── */

/* The state is the number of the generation, from 1. */
static int start_generation(struct mk_generation *g, void **ret_state)
{
    struct cache *cache = mk_generation_plugin_state(g, &mk_plugin_cache);
    *ret_state = (void *)(uintptr_t)++cache->generations;
    return 0;
}

/* The state tells only whether there are sections. */
static int start_host(struct mk_host *host, void **ret_state)
{
    static const char has_rules;
    if (mk_host_conf(host, &directives_sections[DIRECTIVES_RULES]))
        *ret_state = (void *)(uintptr_t)&has_rules;
    return mk_host_check_patterns(host, &directives_sections[DIRECTIVES_RULES], offsetof(struct cache_rule, match));
}

static int start_worker(struct mk_worker *worker, void **ret_state)
{
    const struct mk_generation *g = mk_worker_generation(worker);
    struct cache *cache = mk_generation_plugin_state(g, &mk_plugin_cache);
    struct cache_worker *w = mk_account_alloc(mk_worker_account(worker), sizeof(*w));
    if (!w)
        return -ENOMEM;
    *w = (struct cache_worker){.cache = cache, .worker = worker};
    sweep_init(w);
    mk_epoch_join(mk_worker_loop(worker));
    sweep_resume(w);
    *ret_state = w;
    return 0;
}

static void stop_worker(struct mk_worker *worker, void *state)
{
    struct cache_worker *w = state;
    sweep_cancel(w);
    mk_account_free(mk_worker_account(worker), w, sizeof(*w));
}

static void explain_policy(const struct mk_host *host, struct mk_explain *e)
{
    const void *rule;
    if (e->phase != MK_EXPLAIN_CONTENT)
        return;
    const struct files_policy *policy = match_policy(host, e->path, &rule);
    if (policy->mode == FILES_REVALIDATE)
        mk_explain_add(e, host, rule, MK_EXPLAIN_NOTE, "[CACHE] Files Revalidate %ums", policy->interval_ms);
    else
        mk_explain_add(e, host, rule, MK_EXPLAIN_NOTE, "[CACHE] Files %s", directives_mode_name(policy->mode));
}

MK_PLUGIN(cache) = {
    MK_PLUGIN_HEAD("cache", "2.0.0", "keeps files in memory, or open, for the plugins that serve them"),
    .sections = directives_sections,
    .start = start_process,
    .stop = stop_process,
    .generation_start = start_generation,
    .host_start = start_host,
    .worker_start = start_worker,
    .worker_stop = stop_worker,
    .explain = explain_policy,
    .file_cache = &file_cache,
    .low_on_descriptors = give_descriptors_back,
    .commands = cache_commands,
};

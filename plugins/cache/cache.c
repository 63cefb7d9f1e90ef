// SPDX-License-Identifier: Apache-2.0
/*
 * cache: keeps what names below document roots are, for the plugins that serve files: small files in memory, larger
 * ones open, folders, and names that do not exist (<monkey/file_cache.h>). One table for all workers, which outlives
 * reloads; load.c makes entries, check.c revalidates them and closes descriptors that are not used.
 */
#include "calls.h"
#include "worker.h"

#include <monkey/base/epoch.h>
#include <monkey/hooks.h>
#include <monkey/inspect.h>

#include <errno.h>

extern const struct mk_plugin mk_plugin_cache;

struct cache_generation {
    uint64_t number; /* from 1 */
    bool has_rules;  /* a host has sections about files */
    bool is_used;    /* a host has files that may be kept */
    struct warm warm;
};

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
    cache->bytes_max = conf->bytes_max;
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
    const struct cache_generation *state = mk_generation_state(g, &mk_plugin_cache);
    w->has_limits = true;
    pthread_mutex_lock(&cache->limits_lock);
    if (state->number > cache->limits_number) {
        cache->limits_number = state->number;
        set_limits(cache, mk_generation_conf(g, &directives_sections[DIRECTIVES_SERVER]));
    }
    pthread_mutex_unlock(&cache->limits_lock);
}

/* ── lookups ── */

/*
 * Counts a hit of the entry. Of a hot one only each 16th on average, so that workers seldom write what others read. The
 * multiples of a hash are spread evenly, so which hits these are does not depend on the order of requests.
 */
static void count_hit(struct cache_worker *w, const struct cache_lookup *l, struct entry *e)
{
    uint32_t hits = atomic_load_explicit(&e->hits, memory_order_relaxed), more = 1;
    if (MK_LIKELY(hits >= ENTRY_HITS_EXACT)) {
        w->sample += l->key.hash;
        if (MK_LIKELY(w->sample >> 60))
            return;
        more = 16;
    }
    if (hits < UINT32_MAX - more)
        atomic_store_explicit(&e->hits, hits + more, memory_order_relaxed);
}

/*
 * Returns whether the answer depends on what the kernel has reported: for a name without an entry it only tells of
 * another root. If the name is likely not to be kept again, that is left to the check once in a second, as without the
 * cache, unless the root is a link, such as that to a release.
 */
static inline bool needs_changes(const struct cache_lookup *l, const struct mk_item *item, bool keep)
{
    return l->policy->mode == FILES_NOTIFY && (item || (keep && !load_was_not_kept(l)) || root_name_is_link(l));
}

/*
 * What has been read from a connection since changes were read the last time may be newer than they are. Returns false
 * if another folder may be the root now.
 */
static inline bool read_changes(struct cache_worker *w, const struct cache_lookup *l)
{
    uint64_t arrival = mk_request_arrival(l->req);
    bool is_new = w->notified != arrival;
    if (!is_new && w->confirmed == l->name->root)
        return true;
    if (is_new)
        notify_read(&w->cache->notify);
    w->notified = arrival;
    w->confirmed = root_name_is_confirmed(l) ? l->name->root : NULL;
    return w->confirmed;
}

static struct mk_named_file open_name(struct mk_request *req, const struct mk_file_name *name)
{
    struct cache_worker *w = mk_worker_state(mk_request_worker(req), &mk_plugin_cache);
    MK_UNINITIALIZED struct cache_lookup l;
    l.cache = w->cache;
    l.worker = w;
    l.req = req;
    l.name = name;
    if (!w->has_limits)
        adopt_limits(w);
    const void *rule;
    l.policy = w->has_rules ? directives_find_policy(mk_request_host_conf(req), mk_request_path(req), &rule)
                            : &directives_default_policy;
    l.now_ms = mk_loop_now_ms(w->loop);
    l.turn = mk_loop_turns(w->loop);
    bool keep = l.policy->mode != FILES_OFF && entry_make_key(&l.key, w->cache->store, name, mk_request_mime_id(req));
    struct mk_item *item = keep ? mk_store_find(w->cache->store, l.key.hash, &l.key.bytes, l.key.len) : NULL;
    if (needs_changes(&l, item, keep) && !read_changes(w, &l))
        return entry_make_missing(EAGAIN);
    enum check_result r = item ? check_entry(&l, item) : CHECK_CHANGED;
    if (r == CHECK_VALID) {
        cache_counters_add(&w->cache->counters, COUNT_HITS, w->worker);
        count_hit(w, &l, entry_of(item));
        return load_describe(&l, item);
    }
    if (r == CHECK_WAITS || r == CHECK_SHORT)
        return entry_make_missing(r == CHECK_WAITS ? EAGAIN : EMFILE);
    cache_counters_add(&w->cache->counters, COUNT_MISSES, w->worker);
    l.host = mk_request_host_conf(req);
    l.wall_seconds = mk_loop_wall_seconds(w->loop);
    return load_name(&l, keep);
}

static void forget_turn(struct mk_request *req)
{
    struct cache_worker *w = mk_worker_state(mk_request_worker(req), &mk_plugin_cache);
    w->last_item = NULL;
    w->notified = 0;
    parents_forget(w);
}

static bool is_used(const struct mk_generation *g)
{
    const struct cache_generation *state = mk_generation_state(g, &mk_plugin_cache);
    return state && state->is_used;
}

static const struct mk_file_cache file_cache = {.open = open_name, .forget_turn = forget_turn, .is_used = is_used};

/* ── the process ── */

static const struct mk_store_kind kinds[ENTRY_KINDS] = {
    [ENTRY_BODY] = {.name = "body"},
    [ENTRY_DESCRIPTOR] = {.name = "descriptor", .items_max = 1, .release = entry_release, .share = 5},
    [ENTRY_FOLDER] = {.name = "folder"},
    [ENTRY_MISSING] = {.name = "missing", .items_max = 1, .share = 10},
};

static int start_process(void **ret_state)
{
    struct cache *cache = mk_account_zalloc(NULL, sizeof(*cache));
    if (!cache)
        return -ENOMEM;
    int err =
        mk_store_new(&(struct mk_store_conf){.bytes_max = MK_STORE_BYTES_MIN, .kinds = kinds, .n_kinds = ENTRY_KINDS},
                     &cache->store);
    if (err < 0) {
        mk_account_free(NULL, cache, sizeof(*cache));
        return err;
    }
    pthread_mutex_init(&cache->limits_lock, NULL);
    pthread_mutex_init(&cache->stats_lock, NULL);
    notify_init(&cache->notify);
    cache_counters_open(&cache->counters);
    *ret_state = cache;
    return 0;
}

static void stop_process(void *state)
{
    struct cache *cache = state;
    mk_store_free(cache->store);
    notify_release(&cache->notify);
    for (unsigned kind = 0; kind < ENTRY_KINDS; kind++) {
        mk_counter_add(cache->counters.counters[COUNT_ENTRIES + kind], NULL, -(int64_t)cache->counted[kind].items);
        mk_counter_add(cache->counters.counters[COUNT_BYTES + kind], NULL, -(int64_t)cache->counted[kind].bytes);
    }
    mk_counter_add(cache->counters.counters[COUNT_FOLDERS], NULL, -(int64_t)cache->notify_counted.folders);
    pthread_mutex_destroy(&cache->limits_lock);
    pthread_mutex_destroy(&cache->stats_lock);
    mk_account_free(NULL, cache, sizeof(*cache));
}

static void give_descriptors_back(void *state)
{
    sweep_evict_descriptors(state);
}

/* ── generations, hosts and workers ── */

static int start_generation(struct mk_generation *g, void **ret_state)
{
    struct cache *cache = mk_generation_plugin_state(g, &mk_plugin_cache);
    struct cache_generation *state = mk_account_zalloc(NULL, sizeof(*state));
    if (!state)
        return -ENOMEM;
    state->number = ++cache->generations;
    warm_init(&state->warm, cache, g);
    *ret_state = state;
    return 0;
}

static void stop_generation(struct mk_generation *g, void *state)
{
    struct cache_generation *s = state;
    (void)g;
    warm_release(&s->warm);
    mk_account_free(NULL, s, sizeof(*s));
}

static int check_generation(struct mk_generation *g, void *state)
{
    struct cache_generation *s = state;
    (void)g;
    warm_find_hosts(&s->warm);
    return 0;
}

/* Returns whether a host has files that may be kept: its sections do not say `Files Off` for all paths. */
static bool may_keep(const struct mk_host *host)
{
    const struct mk_conf_section *section = &directives_sections[DIRECTIVES_RULES];
    for (const struct cache_rule *r = mk_host_conf(host, section); r; r = mk_host_conf_next(host, section, r)) {
        if (directives_is_about_files(r) && r->files.mode != FILES_OFF)
            return true;
        if (directives_is_about_files(r) && r->match.kind == MK_PATTERN_PREFIX && mk_str_eq(r->match.text, MK_STR("/")))
            return false;
    }
    return true;
}

/*
 * The state of a host is its first section with Admin. Others have none: the server does not ask this plugin to answer
 * their requests.
 */
static int start_host(struct mk_host *host, void **ret_state)
{
    int result = 0;
    const struct mk_conf_section *section = &directives_sections[DIRECTIVES_RULES];
    struct cache_generation *g = mk_generation_state(mk_host_generation(host), &mk_plugin_cache);
    g->is_used |= may_keep(host);
    for (const struct cache_rule *r = mk_host_conf(host, section); r; r = mk_host_conf_next(host, section, r)) {
        g->has_rules |= directives_is_about_files(r);
        if (r->admin.len && !*ret_state) {
            *ret_state = (void *)(uintptr_t)r;
            mk_host_use_access(host);
            access_check_host(host, r);
        }
        int err = warm_check_rule(host, r);
        result = err < 0 ? err : result;
    }
    int err = mk_host_check_patterns(host, section, offsetof(struct cache_rule, match));
    return err < 0 ? err : result;
}

static int start_worker(struct mk_worker *worker, void **ret_state)
{
    const struct mk_generation *g = mk_worker_generation(worker);
    struct cache *cache = mk_generation_plugin_state(g, &mk_plugin_cache);
    struct cache_worker *w = mk_account_alloc(mk_worker_account(worker), sizeof(*w));
    if (!w)
        return -ENOMEM;
    const struct cache_generation *own = mk_generation_state(g, &mk_plugin_cache);
    *w = (struct cache_worker){.cache = cache,
                               .worker = worker,
                               .loop = mk_worker_loop(worker),
                               .has_rules = own->has_rules};
    mk_event_streams_init(&w->streams, worker, &cache->streams, &stats_events);
    sweep_init(w);
    mk_epoch_join(w->loop);
    sweep_resume(w);
    *ret_state = w;
    return 0;
}

static void stop_worker(struct mk_worker *worker, void *state)
{
    struct cache_worker *w = state;
    sweep_cancel(w);
    parents_release(w);
    mk_account_free(mk_worker_account(worker), w, sizeof(*w));
}

/* The first generation that serves has its first requests wait for Warm. */
static void serve_worker(struct mk_worker *worker, void *state)
{
    struct cache_worker *w = state;
    const struct mk_generation *g = mk_worker_generation(worker);
    struct cache_generation *own = mk_generation_state(g, &mk_plugin_cache);
    const struct cache_conf *conf = mk_generation_conf(g, &directives_sections[DIRECTIVES_SERVER]);
    uint64_t none = 0;
    if (!w->has_limits)
        adopt_limits(w);
    if (atomic_compare_exchange_strong(&w->cache->first_served, &none, own->number) && mk_generation_is_one_shot(g))
        mk_log(MK_LOG_INFO, "cache: a file that is edited is seen by the next request; on network drives and the like "
                            "within a second");
    warm_serve(&own->warm, worker, w->cache->first_served == own->number ? conf->warm_timeout_ms : 0);
}

static void retire_worker(struct mk_worker *worker, void *state)
{
    struct cache_generation *g = mk_generation_state(mk_worker_generation(worker), &mk_plugin_cache);
    struct cache_worker *w = state;
    warm_cancel(&g->warm);
    mk_event_streams_retire(&w->streams);
}

/* ── requests ── */

static int answer_request(struct mk_request *req)
{
    const struct cache_rule *rule = mk_request_host_state(req, &mk_plugin_cache);
    return api_answer(req, mk_worker_state(mk_request_worker(req), &mk_plugin_cache), rule);
}

static void explain_admin(const struct mk_host *host, struct mk_explain *e)
{
    const struct cache_rule *rule = mk_host_state(host, &mk_plugin_cache);
    if (rule && api_has_path(e->path, rule))
        mk_explain_add(e, host, rule, MK_EXPLAIN_MAYBE,
                       "[CACHE] Admin answers clients that a rule or login lets in, and those on this machine");
}

static void explain_policy(const struct mk_host *host, struct mk_explain *e)
{
    const void *rule;
    if (e->phase != MK_EXPLAIN_CONTENT)
        return;
    explain_admin(host, e);
    const struct files_policy *policy = directives_find_policy(host, e->path, &rule);
    if (policy->mode == FILES_REVALIDATE || policy->mode == FILES_NOTIFY)
        mk_explain_add(e, host, rule, MK_EXPLAIN_NOTE, "[CACHE] Files %s %ums", directives_mode_name(policy->mode),
                       policy->interval_ms);
    else
        mk_explain_add(e, host, rule, MK_EXPLAIN_NOTE, "[CACHE] Files %s", directives_mode_name(policy->mode));
}

static const struct mk_process_hooks process_hooks = {.low_on_descriptors = give_descriptors_back};

static const struct mk_inspect_hooks inspect_hooks = {
    .explain = explain_policy,
    .commands = cache_commands,
};

static const struct mk_plugin_interfaces interfaces = {.file_cache = &file_cache};

MK_PLUGIN(cache) = {
    MK_PLUGIN_HEAD("cache", "2.0.0", "keeps files in memory, or open, for the plugins that serve them"),
    .flags = MK_PLUGIN_STATE_NEEDED,
    .sections = directives_sections,
    .start = start_process,
    .stop = stop_process,
    .generation_start = start_generation,
    .generation_stop = stop_generation,
    .host_start = start_host,
    .generation_check = check_generation,
    .worker_start = start_worker,
    .worker_stop = stop_worker,
    .worker_serve = serve_worker,
    .worker_retire = retire_worker,
    .on_content = answer_request,
    .process = &process_hooks,
    .inspection = &inspect_hooks,
    .interfaces = &interfaces,
};

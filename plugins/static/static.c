// SPDX-License-Identifier: Apache-2.0
/*
 * static: responds to GET and HEAD with the files below a host's document root, an alias or the folder of a user.
 * find.c finds the file, host.c opens the roots, settings.c has the directives; the server (mk_response_file()) sends
 * validators, ranges and bytes.
 */
#include "static.h"

#include <monkey/base/arena.h>
#include <monkey/hooks.h>
#include <monkey/program.h>

#include <assert.h>
#include <errno.h>
#include <stdio.h>

/* ── the process ── */

static int start_process(void **ret_state)
{
    (void)ret_state;
    mk__static_file_counters_open();
    return 0;
}

/* ── responses ── */

static const struct {
    int err, status;
} error_statuses[] = {
    {EACCES, 403}, {EPERM, 403}, {EMFILE, 503}, {ENFILE, 503}, {ENOMEM, 503}, {EAGAIN, 503},
};

static int get_status(const struct find_result *found)
{
    if (found->status)
        return found->status;
    if (mk__static_open_is_missing(found->err))
        return 404;
    for (size_t i = 0; i < MK_COUNT_OF(error_statuses); i++)
        if (error_statuses[i].err == found->err)
            return error_statuses[i].status;
    return 500;
}

static void send_file(struct mk_request *req, const struct static_site *site, const struct find_result *found)
{
    assert(found->fd >= 0 || found->content.p);
    if (found->varies)
        mk_response_header_ref(req, MK_STR("Vary"), MK_STR("Accept-Encoding"));
    struct mk_file file = {
        .fd = found->fd,
        .bytes = found->bytes,
        .mtime_seconds = found->mtime.tv_sec,
        .mtime_nanoseconds = (uint32_t)found->mtime.tv_nsec,
        .version = site->settings->tags == STATIC_TAGS_EXACT ? found->version : 0,
        .type = found->block ? MK_STR_NONE : mk_request_mime(req, found->name),
        .coding = mk__static_open_coding(found->name, found->coding),
        .no_ranges = !site->settings->ranges,
        .in_memory = found->in_memory,
        .content = found->content,
        .block = found->block,
        .owner = found->owner,
        .owned = found->owned,
    };
    if (file.content.p && !file.block)
        mk__static_small_file_cache_add_lines(&file);
    mk_response_file(req, &file);
    mk__static_file_counters_add(req, found->coding != MK_CODING_IDENTITY);
}

/* Tells whether no file can have the path of the request: only TryFiles may have content for it. */
static inline bool has_no_file(const struct mk_request *req, const struct static_site *site)
{
    return site->host->n_tries && MK_UNLIKELY(mk_request_has_encoded_slash(req));
}

/* Returns the path that is looked up for the request. */
static struct mk_str get_found_path(const struct mk_request *req, const struct static_site *site)
{
    return has_no_file(req, site) ? mk__static_find_get_last_name(site->host) : mk_request_path(req);
}

/* Has another plugin run the index of the folder that is the request's path, or the last name of TryFiles. */
static void run_program(struct mk_request *req, const struct static_site *site, const struct find_result *found)
{
    MK_UNINITIALIZED char path[STATIC_NAME_BYTES];
    size_t n = mk__static_find_write_path(site, found, get_found_path(req, site), path);
    if (n)
        mk_request_redirect_internally(req, mk_str(path, n));
    else
        mk_response_error(req, 404);
}

/* Rules and logins hold for the path of a file, too. Returns whether it is sent now; else another response is. */
static MK_NOINLINE bool may_send(struct mk_request *req, const struct static_site *site,
                                 const struct find_result *found)
{
    MK_UNINITIALIZED char text[STATIC_NAME_BYTES];
    size_t n = mk__static_find_write_path(site, found, get_found_path(req, site), text);
    struct mk_str path = mk_str(text, n), decided = mk_request_decided_path(req);
    if (n && (mk_str_eq(path, mk_request_path(req)) || (decided.p && mk_str_eq(path, decided))))
        return true;
    if (n)
        return mk_request_decide_access(req, path) == MK_DECLINED;
    mk_response_error(req, 404);
    return false;
}

/* Returns whether access to the file may have to be decided by another path than the request's. */
static inline bool needs_decision(const struct static_site *site, const struct find_result *found)
{
    return (found->is_index || found->tried) && (site->of_host ? site->of_host : site)->decides_access;
}

static MK_HOT void send_result(struct mk_request *req, const struct static_site *site, const struct find_result *found)
{
    switch (found->kind) {
    case FOUND_FILE:
        if (MK_UNLIKELY(needs_decision(site, found)) && !may_send(req, site, found)) {
            struct find_result f = *found;
            mk__static_open_release(&f);
        } else {
            send_file(req, site, found);
        }
        return;
    case FOUND_DIRECTORY:
        mk_response_redirect_to_slash(req, 301);
        return;
    case FOUND_PROGRAM:
        run_program(req, site, found);
        return;
    default:
        mk__static_reasons_note(req, site, found->err);
        mk_response_error(req, get_status(found));
    }
}

/* Returns true if another plugin may have content for the path. */
static bool is_not_found(const struct find_result *found)
{
    return found->kind == FOUND_NOTHING && !found->status && mk__static_open_is_missing(found->err);
}

/* Responds after a lookup on a disk thread. */
static void respond_later(struct mk_request *req, const struct static_site *site, const struct find_result *found)
{
    if (!is_not_found(found)) {
        send_result(req, site, found);
        return;
    }
    mk__static_reasons_note(req, site, found->err);
    mk_request_decline(req);
}

/* ── workers ── */

struct worker_state {
    struct disk_lookups lookups;
    const struct mk_file_cache *cache; /* of another plugin, or NULL */
    struct small_file_cache small_files;
};

static int start_worker(struct mk_worker *worker, void **ret_state)
{
    struct worker_state *state = mk_account_alloc(mk_worker_account(worker), sizeof(*state));
    if (!state)
        return -ENOMEM;
    disk_lookups_init(&state->lookups);
    state->cache = mk_generation_file_cache(mk_worker_generation(worker));
    mk__static_small_file_cache_init(&state->small_files, mk_worker_account(worker));
    *ret_state = state;
    return 0;
}

static void stop_worker(struct mk_worker *worker, void *ctx)
{
    struct worker_state *state = ctx;
    mk__static_small_file_cache_release(&state->small_files);
    mk_account_free(mk_worker_account(worker), state, sizeof(*state));
}

/* ── requests ── */

/* Finds a file without waiting: `err` is EAGAIN if that is not possible, or not permitted. */
static struct find_result find_cached(struct mk_request *req, const struct static_location *at,
                                      const struct mk_accept *accept, bool permitted)
{
    if (!permitted)
        return (struct find_result){.kind = FOUND_NOTHING, .err = EAGAIN};
    struct worker_state *worker = mk_worker_state(mk_request_worker(req), &mk_plugin_static);
    const struct find_mode mode = {.accept = accept, .cached = true, .cache = worker->cache, .req = req};
    return mk__static_small_file_cache_find(&worker->small_files, mk_loop_turns(mk_request_loop(req)), at, &mode);
}

static int serve_again(struct mk_request *req, const struct static_location *at);

static const struct disk_lookup_functions lookup_functions = {.respond = respond_later, .serve_again = serve_again};

/* How often a request was served. */
enum attempt {
    ATTEMPT_FIRST,
    ATTEMPT_WAITED, /* for the lookup of another request */
    ATTEMPT_RETRY,  /* after the cache has given descriptors back */
};

static int serve_retry(struct mk_request *req, const struct static_location *at);

/* Looks the path up in the kernel's cache, else on a disk thread. */
static MK_HOT int serve_location(struct mk_request *req, const struct static_location *at, enum attempt attempt)
{
    struct static_site *site = at->site;
    struct mk_accept accept = {{0}};
    uint64_t now = mk_loop_now_ms(mk_request_loop(req));
    bool is_in_root = !userdir_is_matched(at), checks = is_in_root && mk__static_root_begin_check(site, now);
    bool is_current = is_in_root && !checks && !site->may_be_replaced;
    if (site->host->n_codings && mk_request_passes_header(req, MK_STR("Accept-Encoding")))
        mk_accept_encoding(mk_request_header(req, MK_HEADER_ACCEPT_ENCODING), &accept);
    struct find_result found = find_cached(req, at, &accept, is_current);
    if (is_not_found(&found)) {
        mk__static_reasons_note(req, site, found.err);
        return MK_DECLINED;
    }
    if (found.kind != FOUND_NOTHING || (found.err != EAGAIN && found.err != EMFILE && found.err != ENFILE)) {
        send_result(req, site, &found);
        return 0;
    }
    struct worker_state *worker = mk_worker_state(mk_request_worker(req), &mk_plugin_static);
    if (found.err != EAGAIN) { /* there were no descriptors, and the cache gives its own back */
        bool retries = attempt != ATTEMPT_RETRY && worker && worker->cache;
        if (!retries || mk__static_retry_arm(req, at, serve_retry) != 0)
            send_result(req, site, &found);
        return 0;
    }
    struct disk_lookups *lookups = worker && attempt == ATTEMPT_FIRST ? &worker->lookups : NULL; /* NULL: its own */
    if (mk__static_disk_lookup_start(lookups, req, at, &accept, checks ? now : 0, &lookup_functions) < 0) {
        if (checks)
            mk__static_root_end_check(site, now);
        mk_response_error(req, 503);
    }
    return 0;
}

static int serve_again(struct mk_request *req, const struct static_location *at)
{
    return serve_location(req, at, ATTEMPT_WAITED);
}

static int serve_retry(struct mk_request *req, const struct static_location *at)
{
    return serve_location(req, at, ATTEMPT_RETRY);
}

/* ── other methods than GET and HEAD ── */

/* Returns 0 or MK_DECLINED: another plugin may know a method that the server does not, else it is 501. */
static int refuse_method(struct mk_request *req)
{
    if (mk_request_method(req) == MK_METHOD_OTHER)
        return MK_DECLINED;
    mk_request_set_reason(req, MK_REASON_METHOD);
    mk_response_method_not_allowed(req, MK_STR("GET, HEAD, OPTIONS"));
    return 0;
}

/* Files take no other method, but a program that is the index of a folder, or that TryFiles leads to, may. */
static void respond_other_method(struct mk_request *req, const struct static_site *site,
                                 const struct find_result *found)
{
    struct find_result f = *found;
    mk__static_open_release(&f);
    if (found->kind == FOUND_PROGRAM)
        run_program(req, site, found);
    else if (refuse_method(req) == MK_DECLINED)
        mk_request_decline(req);
}

static int serve_other_method(struct mk_request *req, const struct static_location *at)
{
    static const struct disk_lookup_functions functions = {.respond = respond_other_method};
    const struct mk_accept accept = {{0}};
    bool may_be_program = at->site->sources != SOURCES_NONE &&
                          (mk_str_ends(mk_request_path(req), MK_STR("/")) || at->site->host->n_tries);
    if (!may_be_program || mk__static_disk_lookup_start(NULL, req, at, &accept, 0, &functions) < 0)
        return refuse_method(req);
    return 0;
}

/* ── an encoded slash: no file has such a name, but TryFiles may end with one for all that is not there ── */

static int accept_encoded_slash(const struct mk_host *host, struct mk_str path)
{
    const struct static_site *site = mk_host_state(host, &mk_plugin_static);
    (void)path;
    return site && mk__static_find_get_last_name(site->host).p ? MK_ENCODED_SLASH_KEEP : MK_ENCODED_SLASH_REFUSE;
}

/* Puts the last name in place of the path. Returns false if that is for another plugin, or has no such name. */
static MK_COLD bool replace_by_last_name(const struct mk_request *req, struct static_location *at)
{
    bool is_in_root = !userdir_is_matched(at) && !at->site->of_host;
    struct mk_str last = mk__static_find_get_last_name(at->site->host);
    if (!is_in_root || !last.p || !mk_host_asks_files(mk_request_host_conf(req), mk_request_path(req)))
        return false;
    at->path = last;
    return true;
}

static MK_HOT int serve_request(struct mk_request *req)
{
    struct static_site *site = mk_request_host_state(req, &mk_plugin_static);
    enum mk_method method = mk_request_method(req);

    struct static_location at = {site, mk_request_path(req), MK_STR_NONE};
    if (!site || !site->has_files)
        return MK_DECLINED;
    if (!mk_str_starts(at.path, MK_STR("/"))) /* OPTIONS *, CONNECT */
        return refuse_method(req);
    if (sources_have_path(site, at.path)) {
        mk_request_set_reason(req, MK_REASON_SOURCE);
        return MK_DECLINED; /* 404, unless a plugin after this one runs it */
    }
    bool reads = method == MK_GET || method == MK_HEAD;
    if (reads && mk__static_open_is_hidden(site, at.path)) {
        mk_request_set_reason(req, MK_REASON_HIDDEN);
        if (site->host->n_tries)
            return MK_DECLINED; /* 404, unless it is forwarded */
        mk_response_error(req, 404);
        return 0;
    }
    bool has_folders = site->aliases || site->host->user_dir.len;
    if (has_folders && !mk__static_alias_find(&at))
        mk__static_userdir_match(&at);
    if (has_no_file(req, site) && !replace_by_last_name(req, &at))
        return MK_DECLINED;
    if (!reads)
        return serve_other_method(req, &at);
    if (alias_needs_slash(&at)) {
        mk_response_redirect_to_slash(req, 301);
        return 0;
    }
    return serve_location(req, &at, ATTEMPT_FIRST);
}

/* Tells whether a section has the path, or that of a program for it, and refuses its encoded slash: else none does. */
static MK_COLD bool refuses_encoded_slash(const struct mk_request *req)
{
    const struct mk_host *host = mk_request_host_conf(req);
    struct mk_str path = mk_request_path(req);
    bool is_program = mk_host_is_source(host, MK_SOURCE_PATH, path) && mk_host_runs_source(host, path);
    return is_program || !mk_host_asks_files(host, mk_request_original_path(req));
}

static MK_HOT void replace_error_page(struct mk_request *req)
{
    if (mk_response_get_status(req) < 400) /* no error */
        return;
    struct static_site *site = mk_request_host_state(req, &mk_plugin_static);
    if (site && site->hints_at_listing)
        mk__static_listing_hint_give(req, site);
    if (mk_request_reason(req) == MK_REASON_ENCODED_SLASH && !refuses_encoded_slash(req))
        mk_request_set_reason(req, MK_REASON_NONE);
    mk__static_reasons_log(req, site);
    if (site && site->errors)
        mk__static_errors_apply(req, site, &mk__static_settings_sections[SETTINGS_ERROR_PAGES]);
}

/* A request that is neither GET nor HEAD may have changed files: later ones must not get the cached ones. */
static MK_HOT void clear_caches(struct mk_request *req)
{
    enum mk_method method = mk_request_method(req);
    if (method == MK_GET || method == MK_HEAD)
        return;
    struct worker_state *worker = mk_worker_state(mk_request_worker(req), &mk_plugin_static);
    if (worker->cache)
        worker->cache->forget_turn(req);
    mk__static_small_file_cache_clear(&worker->small_files);
}

static const struct mk_path_hooks path_hooks = {
    .open_path = mk__static_host_open_path,
    .accepts_encoded_slash = accept_encoded_slash,
};

static const struct mk_inspect_hooks inspect_hooks = {
    .explain = mk__static_host_explain,
    .explain_path = mk__static_host_explain_path,
};

static const struct mk_plugin_interfaces interfaces = {.file_server = &mk__static_host_file_server};

MK_PLUGIN(static) = {
    MK_PLUGIN_HEAD("static", "2.0.0", "serves the files below a document root"),
    .flags = MK_PLUGIN_CHECKS_ALL,
    .sections = mk__static_settings_sections,
    .start = start_process,
    .host_start = mk__static_host_start,
    .host_stop = mk__static_host_stop,
    .generation_check = mk__static_host_check_all,
    .worker_start = start_worker,
    .worker_stop = stop_worker,
    .on_content = serve_request,
    .on_response = replace_error_page,
    .on_done = clear_caches,
    .paths = &path_hooks,
    .inspection = &inspect_hooks,
    .interfaces = &interfaces,
};

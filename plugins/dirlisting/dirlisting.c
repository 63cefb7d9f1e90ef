// SPDX-License-Identifier: Apache-2.0
/*
 * dirlisting: lists folders that have no index. It comes after the plugin that serves files, which declines them. This
 * file decides which requests it answers.
 */
#include "archive.h"
#include "listing.h"
#include "send.h"

#include <monkey/hooks.h>
#include <monkey/inspect.h>

#include <assert.h>
#include <errno.h>
#include <time.h>

static const struct mk_counter_info listings = {"dirlisting", "listings", "listings of folders", MK_COUNTER_SUM};
static const struct mk_counter_info archives = {"dirlisting", "archives", "archives of folders, by result",
                                                MK_COUNTER_SUM};
static const struct mk_counter_info bytes = {"dirlisting", "archive_bytes", "bytes of archives", MK_COUNTER_SUM};

static const struct mk_counter_row rows[LISTING_COUNTS] = {
    [LISTING_COUNT_PAGES] = {&listings, {0}},
    [LISTING_COUNT_ARCHIVES] = {&archives, {"result", "begun"}},
    [LISTING_COUNT_ARCHIVES_BUSY] = {&archives, {"result", "too_many"}},
    [LISTING_COUNT_ARCHIVES_OWN] = {&archives, {"result", "too_many_of_client"}},
    [LISTING_COUNT_ARCHIVES_TRUNCATED] = {&archives, {"result", "truncated"}},
    [LISTING_COUNT_ARCHIVE_BYTES] = {&bytes, {0}},
};

static const struct mk_counter *counters[LISTING_COUNTS];

void listing_counters_add(enum listing_count count, const struct mk_request *req, size_t n)
{
    assert(count < LISTING_COUNTS && counters[count]);
    mk_counter_add(counters[count], mk_request_worker(req), (int64_t)n);
}

extern const struct mk_plugin mk_plugin_dirlisting;

/* ── the process ── */

static int start_process(void **ret_state)
{
    (void)ret_state;
    mk_counters_open(rows, LISTING_COUNTS, counters);
    return 0;
}

/* ── hosts ── */

static void stop_host(struct mk_host *host, void *state)
{
    (void)host;
    mk_account_free(NULL, state, sizeof(struct listing_host)); /* NULL: the host has no section */
}

/* Opens libarchive if a section has archives. Returns 0 or -EINVAL (reported). */
static int load_archives(struct mk_host *host, const struct mk_conf_section *section)
{
    for (const struct listing_rule *r = mk_host_conf(host, section); r; r = mk_host_conf_next(host, section, r)) {
        MK_BUF_ON_STACK(error, 256);
        if (!r->archive_names.n || tar_load(&error) == 0)
            continue;
        mk_host_error(host, r, offsetof(struct listing_rule, archive_names), 0,
                      "archives need libarchive.so.13 (Debian: libarchive13): %.*s", MK_STR_ARG(mk_buf_str(&error)));
        return -EINVAL;
    }
    return 0;
}

static int start_host(struct mk_host *host, void **ret_state)
{
    struct timespec now;
    const struct mk_conf_section *section = &rules_sections[RULES_RULE];
    if (!mk_host_conf(host, section))
        return 0; /* a host without a section costs nothing */
    struct listing_host *state = mk_account_alloc(NULL, sizeof(*state));
    if (!state)
        return -ENOMEM;
    clock_gettime(CLOCK_REALTIME, &now);
    *state =
        (struct listing_host){.host = host, .loaded_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec};
    int err = mk_host_check_patterns(host, section, offsetof(struct listing_rule, match));
    int loaded = load_archives(host, section);
    err = err < 0 ? err : loaded;
    int pages = err == -ENOMEM ? err : page_start_host(host, state);
    err = err < 0 && pages != -ENOMEM ? err : pages;
    if (err < 0)
        stop_host(host, state);
    else
        *ret_state = state;
    return err;
}

/* ── requests ── */

static bool is_folder(const struct mk_request *req)
{
    enum mk_method method = mk_request_method(req);
    struct mk_str path = mk_request_path(req);
    return (method == MK_GET || method == MK_HEAD) && path.len && path.p[0] == '/' && path.p[path.len - 1] == '/';
}

static int answer_request(struct mk_request *req)
{
    const struct listing_host *host = mk_request_host_state(req, &mk_plugin_dirlisting);
    const struct listing_rule *rule = host && is_folder(req) ? rules_find(host->host, mk_request_path(req)) : NULL;
    if (!rule || !rule->enabled)
        return MK_DECLINED;
    struct query query = query_parse(mk_request_query(req));
    int err = query.archive.p ? archive_send(req, host, rule, query.archive) : send_listing(req, host, rule, &query);
    if (err < 0)
        mk_response_error(req, 503);
    return 0;
}

static void explain_listing(const struct mk_host *host, struct mk_explain *e)
{
    const struct listing_host *state = mk_host_state(host, &mk_plugin_dirlisting);
    bool is_path_of_folder = e->path.len && e->path.p[e->path.len - 1] == '/';
    bool reads = mk_str_eq(e->method, MK_STR("GET")) || mk_str_eq(e->method, MK_STR("HEAD"));
    const struct listing_rule *rule = state && is_path_of_folder && reads ? rules_find(host, e->path) : NULL;
    if (e->phase == MK_EXPLAIN_CONTENT && rule)
        mk_explain_add(e, host, rule, rule->enabled ? MK_EXPLAIN_MAYBE : MK_EXPLAIN_NOTE, "%s",
                       rule->enabled ? "[DIRLISTING] lists the folder, if it exists and has no index"
                                     : "[DIRLISTING] does not list the folder: Enabled is Off");
}

static const struct mk_inspect_hooks inspect_hooks = {.explain = explain_listing};

MK_PLUGIN(dirlisting) = {
    MK_PLUGIN_HEAD("dirlisting", "2.0.0", "lists folders: HTML, JSON, archives"),
    .flags = MK_PLUGIN_CHECKS_ALL | MK_PLUGIN_STATE_NEEDED,
    .sections = rules_sections,
    .start = start_process,
    .generation_start = page_start_generation,
    .generation_stop = page_stop_generation,
    .host_start = start_host,
    .host_stop = stop_host,
    .on_content = answer_request,
    .inspection = &inspect_hooks,
};

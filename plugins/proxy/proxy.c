// SPDX-License-Identifier: Apache-2.0
/*
 * proxy: passes requests to backends over HTTP/1.1, and their responses to the clients. This file has the hooks.
 */
#include <monkey/inspect.h>
#include <monkey/plugin.h>

#include <errno.h>

#include "commands.h"
#include "counters.h"
#include "exchange.h"
#include "forwards.h"
#include "names.h"
#include "orphan.h"
#include "process.h"

/* ── the process ── */

static int start_process(void **ret_state)
{
    struct process *process = mk_account_alloc(NULL, sizeof(*process));
    if (!process)
        return -ENOMEM;
    *process = (struct process){0};
    mk_threads_init(&process->threads, &thread_type);
    counters_open();
    *ret_state = process;
    return 0;
}

static void stop_process(void *state)
{
    struct process *process = state;
    mk_threads_release(&process->threads);
    tally_free_all();
    mk_account_free(NULL, process, sizeof(*process));
}

static void shed_connections(void *state)
{
    struct process *process = state;
    threads_shed(&process->threads);
}

static void free_memory(struct mk_worker *worker, void *state)
{
    struct mk_thread_worker *w = mk_worker_state(worker, &mk_plugin_proxy);
    (void)state;
    if (w)
        thread_shed(thread_of(w->thread));
}

/* ── generations, hosts and workers ── */

static int start_generation(struct mk_generation *g, void **ret_state)
{
    (void)g;
    struct generation *own = mk_account_alloc(NULL, sizeof(*own));
    if (!own)
        return -ENOMEM;
    tally_begin_generation();
    *own = (struct generation){.clients = {.names_ms = NAMES_WAIT_MS}};
    *ret_state = own;
    return 0;
}

static void stop_generation(struct mk_generation *g, void *state)
{
    struct generation *own = state;
    struct process *process = mk_generation_plugin_state(g, &mk_plugin_proxy);
    clients_close(&own->clients);
    if (own->budget)
        budgets_put(&process->budgets, own->budget);
    mk_account_free(NULL, own, sizeof(*own));
    tally_end_generation();
}

/* Finds the budget for bodies that wait, if a section of the host has a use for it. Returns 0, -EINVAL or -ENOMEM. */
static int prepare_budget(struct mk_host *host, struct generation *own)
{
    struct mk_generation *g = mk_host_generation(host);
    struct process *process = mk_generation_plugin_state(g, &mk_plugin_proxy);
    const struct spool_conf *spool = mk_generation_conf(g, &proxy_sections[SPOOL_SECTION]);
    int err = 0;
    for (const struct proxy_conf *c = mk_host_conf(host, proxy_sections); c;
         c = mk_host_conf_next(host, proxy_sections, c)) {
        if (!c->buffer.memory_bytes && !c->spool_request_bytes)
            continue;
        if (!own->budget)
            own->budget = budgets_hold(&process->budgets, spool);
        if (!own->budget)
            return -ENOMEM;
        if (own->budget->err && spool->folder.len)
            mk_host_error(host, spool, offsetof(struct spool_conf, folder), 0, "no file can be made in \"%s\": %s",
                          own->budget->folder, strerror(-own->budget->err));
        else if (own->budget->err && c->spool_request_bytes)
            mk_host_error(host, c, offsetof(struct proxy_conf, spool_request_bytes), 0,
                          "SpoolRequest needs a folder that can be written, and \"%s\" cannot (%s): name one in "
                          "Folder of [SPOOL]",
                          own->budget->folder, strerror(-own->budget->err));
        else
            continue;
        err = -EINVAL;
    }
    return err;
}

/* A host that has sections. */
struct host {
    struct route *routes;
    bool tries_files; /* before GET and HEAD are passed on */
};

static void stop_host(struct mk_host *host, void *state)
{
    struct host *own = state;
    (void)host;
    if (!own)
        return;
    routes_free(own->routes);
    mk_account_free(NULL, own, sizeof(*own));
}

static int start_host(struct mk_host *host, void **ret_state)
{
    if (!mk_host_conf(host, proxy_sections))
        return 0;
    struct host *own = mk_account_alloc(NULL, sizeof(*own));
    if (!own)
        return -ENOMEM;
    struct generation *g = mk_generation_state(mk_host_generation(host), &mk_plugin_proxy);
    int err = mk_host_check_patterns(host, proxy_sections, offsetof(struct proxy_conf, match));
    int opened = routes_open(&g->clients, host, &own->routes);
    int prepared = prepare_budget(host, g);
    if (opened == 0 && mk_generation_is_check(mk_host_generation(host)))
        names_check(host, own->routes, &g->clients.names_ms);
    if (err == 0)
        err = opened < 0 ? opened : prepared;
    if (err == 0)
        *ret_state = own;
    else
        stop_host(host, own);
    return err;
}

static int check_generation(struct mk_generation *g, void *state)
{
    (void)state;
    for (struct mk_host *host = mk_generation_first_host(g); host; host = mk_host_next(host)) {
        struct host *own = mk_host_state(host, &mk_plugin_proxy);
        if (own)
            own->tries_files = mk_host_tries_files(host);
    }
    return 0;
}

static int start_worker(struct mk_worker *worker, void **ret_state)
{
    struct process *process = mk_generation_plugin_state(mk_worker_generation(worker), &mk_plugin_proxy);
    struct mk_thread_worker *w = mk_account_alloc(NULL, sizeof(*w));
    if (!w)
        return -ENOMEM;
    int err = mk_threads_add_worker(&process->threads, w, worker);
    if (err < 0)
        mk_account_free(NULL, w, sizeof(*w));
    else
        *ret_state = w;
    return err;
}

static void stop_worker(struct mk_worker *worker, void *state)
{
    struct mk_thread_worker *w = state;
    orphans_stop(thread_of(w->thread), worker);
    thread_of(w->thread)->last_worker = worker;
    mk_threads_remove_worker(w);
    mk_account_free(NULL, state, sizeof(struct mk_thread_worker));
}

/*
 * The limits outlast generations: those of a configuration that is refused never count. Counters that a former process
 * has left are hidden.
 */
static void serve_worker(struct mk_worker *worker, void *state)
{
    struct mk_generation *g = mk_worker_generation(worker);
    const struct generation *own = mk_generation_state(g, &mk_plugin_proxy);
    (void)state;
    if (own->budget)
        budget_set_limits(own->budget, mk_generation_conf(g, &proxy_sections[SPOOL_SECTION]));
    if (mk_worker_index(worker) == 0)
        tally_hide_unused();
}

/* ── requests ── */

/* Finds the section for a path; NULL: none. Returns 0, or -errno (it is not known). */
static int find_section(const struct mk_host *host, struct mk_str path, const struct proxy_conf **ret)
{
    const void *conf = NULL;
    int err = mk_host_state(host, &mk_plugin_proxy)
                  ? mk_host_conf_match(host, proxy_sections, offsetof(struct proxy_conf, match), path, &conf)
                  : 0;
    *ret = conf;
    return err;
}

/* Passes the request on, if a section has its path. */
static int pass_request(struct mk_request *req, const struct host *host)
{
    const struct mk_thread_worker *w = mk_worker_state(mk_request_worker(req), &mk_plugin_proxy);
    const struct proxy_conf *conf;
    int err = find_section(mk_request_host_conf(req), mk_request_path(req), &conf);
    if (err < 0)
        return err;
    if (!conf)
        return MK_DECLINED;
    if (forwards_end_here(req))
        return 0;
    exchange_begin(req, routes_find(host->routes, conf), thread_of(w->thread));
    return 0;
}

/* Tells whether files come first, and the request is passed on if there is none. */
static bool is_deferred(const struct mk_request *req, const struct host *host)
{
    enum mk_method method = mk_request_method(req);
    return host->tries_files && (method == MK_GET || method == MK_HEAD);
}

static int proxy_request(struct mk_request *req)
{
    const struct host *host = mk_request_host_state(req, &mk_plugin_proxy);
    if (!host || mk_request_method(req) == MK_CONNECT || is_deferred(req, host))
        return MK_DECLINED;
    return pass_request(req, host);
}

static int proxy_missing(struct mk_request *req)
{
    const struct host *host = mk_request_host_state(req, &mk_plugin_proxy);
    return host && is_deferred(req, host) ? pass_request(req, host) : MK_DECLINED;
}

static bool accepts_encoded_slash(const struct mk_host *host, struct mk_str path)
{
    const struct proxy_conf *conf;
    return find_section(host, path, &conf) == 0 && conf && conf->encoded_slash == PROXY_ENCODED_SLASH_KEEP;
}

/* A path that is passed on is not the file of that name, unless files come first. */
static int allows_path(struct mk_request *req, struct mk_str path)
{
    const struct proxy_conf *conf;
    int err = find_section(mk_request_host_conf(req), path, &conf);
    const struct host *host = mk_request_host_state(req, &mk_plugin_proxy);
    return err < 0 ? err : !conf || host->tries_files;
}

static bool explains_files(const struct mk_host *host, const struct mk_explain *e)
{
    const struct host *own = mk_host_state(host, &mk_plugin_proxy);
    return own && own->tries_files && (mk_str_eq(e->method, MK_STR("GET")) || mk_str_eq(e->method, MK_STR("HEAD")));
}

static void explain(const struct mk_host *host, struct mk_explain *e)
{
    const struct proxy_conf *conf;
    if (e->phase != MK_EXPLAIN_CONTENT)
        return;
    if (find_section(host, e->path, &conf) < 0)
        mk_explain_add(e, host, NULL, MK_EXPLAIN_ANSWERS,
                       "500, because a pattern of [PROXY] takes too much time for the path");
    else if (conf && explains_files(host, e))
        mk_explain_add(e, host, conf, MK_EXPLAIN_MAYBE, "[PROXY]: passed to %.*s, if TryFiles finds no file",
                       MK_STR_ARG(conf->to.text));
    else if (conf)
        mk_explain_add(e, host, conf, MK_EXPLAIN_ANSWERS, "[PROXY]: passed to %.*s", MK_STR_ARG(conf->to.text));
}

static const struct mk_plugin_need needs[] = {{"tls", "To", "https://"}, {0}};

MK_PLUGIN(proxy) = {
    MK_PLUGIN_HEAD("proxy", "2.0.0", "passes requests to backends"),
    .flags = MK_PLUGIN_STATE_NEEDED,
    .sections = proxy_sections,
    .needs = needs,
    .start = start_process,
    .stop = stop_process,
    .generation_start = start_generation,
    .generation_stop = stop_generation,
    .host_start = start_host,
    .host_stop = stop_host,
    .generation_check = check_generation,
    .worker_start = start_worker,
    .worker_stop = stop_worker,
    .worker_serve = serve_worker,
    .on_content = proxy_request,
    .accepts_encoded_slash = accepts_encoded_slash,
    .allows_path = allows_path,
    .explain = explain,
    .low_on_descriptors = shed_connections,
    .on_fallback = proxy_missing,
    .low_on_memory = free_memory,
    .commands = proxy_commands,
};

// SPDX-License-Identifier: Apache-2.0
/*
 * proxy: passes requests to backends over HTTP/1.1, and their responses to the clients. This file has the hooks.
 */
#include <monkey/inspect.h>
#include <monkey/plugin.h>

#include <errno.h>

#include "counters.h"
#include "exchange.h"

extern const struct mk_plugin mk_plugin_proxy;

/* ── the process ── */

static int start_process(void **ret_state)
{
    struct mk_threads *threads = mk_account_alloc(NULL, sizeof(*threads));
    if (!threads)
        return -ENOMEM;
    mk_threads_init(threads, &thread_type);
    counters_open();
    *ret_state = threads;
    return 0;
}

static void stop_process(void *state)
{
    mk_threads_release(state);
    mk_account_free(NULL, state, sizeof(struct mk_threads));
}

static void shed_connections(void *state)
{
    threads_shed(state);
}

/* ── generations, hosts and workers ── */

static int start_generation(struct mk_generation *g, void **ret_state)
{
    (void)g;
    struct clients *clients = mk_account_alloc(NULL, sizeof(*clients));
    if (!clients)
        return -ENOMEM;
    *clients = (struct clients){0};
    *ret_state = clients;
    return 0;
}

static void stop_generation(struct mk_generation *g, void *state)
{
    (void)g;
    clients_close(state);
    mk_account_free(NULL, state, sizeof(struct clients));
}

/* A host that has sections. */
struct host {
    struct route *routes;
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
    int err = mk_host_check_patterns(host, proxy_sections, offsetof(struct proxy_conf, match));
    int opened = routes_open(mk_generation_state(mk_host_generation(host), &mk_plugin_proxy), host, &own->routes);
    if (err == 0)
        err = opened;
    if (err == 0)
        *ret_state = own;
    else
        stop_host(host, own);
    return err;
}

static int start_worker(struct mk_worker *worker, void **ret_state)
{
    struct mk_threads *threads = mk_generation_plugin_state(mk_worker_generation(worker), &mk_plugin_proxy);
    struct mk_thread_worker *w = mk_account_alloc(NULL, sizeof(*w));
    if (!w)
        return -ENOMEM;
    int err = mk_threads_add_worker(threads, w, worker);
    if (err < 0)
        mk_account_free(NULL, w, sizeof(*w));
    else
        *ret_state = w;
    return err;
}

static void stop_worker(struct mk_worker *worker, void *state)
{
    (void)worker;
    mk_threads_remove_worker(state);
    mk_account_free(NULL, state, sizeof(struct mk_thread_worker));
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

static int proxy_request(struct mk_request *req)
{
    const struct host *host = mk_request_host_state(req, &mk_plugin_proxy);
    const struct mk_thread_worker *w = mk_worker_state(mk_request_worker(req), &mk_plugin_proxy);
    const struct proxy_conf *conf;
    if (!host || mk_request_method(req) == MK_CONNECT)
        return MK_DECLINED;
    int err = find_section(mk_request_host_conf(req), mk_request_path(req), &conf);
    if (err < 0)
        return err;
    if (!conf)
        return MK_DECLINED;
    exchange_begin(req, routes_find(host->routes, conf), thread_of(w->thread));
    return 0;
}

static bool accepts_encoded_slash(const struct mk_host *host, struct mk_str path)
{
    const struct proxy_conf *conf;
    return find_section(host, path, &conf) == 0 && conf && conf->encoded_slash == PROXY_ENCODED_SLASH_KEEP;
}

/* A path that is passed on is not the file of that name. */
static int allows_path(struct mk_request *req, struct mk_str path)
{
    const struct proxy_conf *conf;
    int err = find_section(mk_request_host_conf(req), path, &conf);
    return err < 0 ? err : !conf;
}

static void explain(const struct mk_host *host, struct mk_explain *e)
{
    const struct proxy_conf *conf;
    if (e->phase != MK_EXPLAIN_CONTENT)
        return;
    if (find_section(host, e->path, &conf) < 0)
        mk_explain_add(e, host, NULL, MK_EXPLAIN_ANSWERS,
                       "500, because a pattern of [PROXY] takes too much time for the path");
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
    .worker_start = start_worker,
    .worker_stop = stop_worker,
    .on_content = proxy_request,
    .accepts_encoded_slash = accepts_encoded_slash,
    .allows_path = allows_path,
    .explain = explain,
    .low_on_descriptors = shed_connections,
};

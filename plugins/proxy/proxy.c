// SPDX-License-Identifier: Apache-2.0
/*
 * proxy: passes requests to backends over HTTP/1.1, and their responses to the clients. This file has the hooks.
 */
#include "proxy.h"

#include <monkey/file_cache.h>
#include <monkey/hooks.h>
#include <monkey/inspect.h>
#include <monkey/kit/backend_stats.h>
#include <monkey/kit/command.h>
#include <monkey/kit/source.h>

#include <errno.h>

extern const struct mk_plugin mk_plugin_proxy;

/* ── the process, generations, hosts and workers ── */

static int start_process(void **ret_state)
{
    static const struct mk_counter_info counters[MK_GATEWAY_COUNTS] = MK_GATEWAY_COUNTER_INFOS("proxy");
    static const struct mk_counter_info stats_infos[] = MK_BACKEND_STATS_INFOS("proxy");
    static const struct mk_gateway_type type = {.plugin = &mk_plugin_proxy,
                                                .counters = counters,
                                                .stats_infos = stats_infos};
    ambiguous_open();
    return mk_gateway_new(&type, ret_state);
}

static int start_generation(struct mk_generation *g, void **ret_state)
{
    return mk_gateway_start_generation(&mk_plugin_proxy, g, ret_state);
}

static int start_worker(struct mk_worker *worker, void **ret_state)
{
    return mk_gateway_start_worker(&mk_plugin_proxy, worker, ret_state);
}

/* A host that has sections. */
struct host {
    struct mk_gateway_routes routes;
    struct mk_source_root root;
    enum mk_tries tries;
};

static void stop_host(struct mk_host *host, void *state)
{
    struct host *own = state;
    (void)host;
    if (!own)
        return;
    mk_gateway_free_routes(&own->routes);
    mk_source_folder_release(&own->root.folder);
    mk_account_free(NULL, own, sizeof(*own));
}

static int start_host(struct mk_host *host, void **ret_state)
{
    if (!mk_host_conf(host, proxy_sections))
        return 0;
    struct host *own = mk_account_zalloc(NULL, sizeof(*own));
    if (!own)
        return -ENOMEM;
    mk_source_root_init(&own->root, host);
    int err = mk_host_check_patterns(host, proxy_sections, offsetof(struct proxy_conf, gateway.match));
    int opened = mk_gateway_open_routes(&mk_plugin_proxy, host, proxy_sections, &proxy_protocol, &own->routes);
    if (err == 0)
        err = opened;
    if (err == 0)
        *ret_state = own;
    else
        stop_host(host, own);
    return err;
}

static int check_generation(struct mk_generation *g, void *state)
{
    const struct mk_file_server *files = mk_generation_file_server(g);
    (void)state;
    for (struct mk_host *host = mk_generation_first_host(g); host; host = mk_host_next(host)) {
        struct host *own = mk_host_state(host, &mk_plugin_proxy);
        if (own && files)
            own->tries = files->tries(host);
    }
    return 0;
}

/* ── requests ── */

/* Finds the section for a path; NULL: none. Returns 0, or -errno (it is not known). */
static int find_section(const struct mk_host *host, struct mk_str path, const struct proxy_conf **ret)
{
    const void *conf = NULL;
    int err = mk_host_state(host, &mk_plugin_proxy)
                  ? mk_host_conf_match(host, proxy_sections, offsetof(struct proxy_conf, gateway.match), path, &conf)
                  : 0;
    *ret = conf;
    if (conf && mk_host_prefers_files(host, &(*ret)->gateway.match, path))
        *ret = NULL;
    return err;
}

/*
 * Tells whether files come before GET and HEAD of some paths of the section. Where TryFiles answers every path, no
 * request would get to the section then: one that is for a part of the site comes first.
 */
static bool leaves_files(const struct host *host, const struct proxy_conf *conf)
{
    return host->tries == MK_TRIES_SOME ||
           (host->tries == MK_TRIES_ALL && mk_source_is_whole_site(&conf->gateway.match));
}

/* Tells whether files come before GET and HEAD of a path. A file that the section takes by its name is no such file. */
static bool comes_after_files(const struct host *host, const struct proxy_conf *conf, struct mk_str path)
{
    return leaves_files(host, conf) && !mk_source_is_by_name(&conf->gateway.match, path);
}

static bool asks_for_file(const struct mk_request *req)
{
    enum mk_method method = mk_request_method(req);
    return method == MK_GET || method == MK_HEAD;
}

/* Passes the request on, if a section has its path, and it is its turn: before files, or when there is none. */
static int pass_request(struct mk_request *req, const struct host *host, bool after_files)
{
    const struct proxy_conf *conf;
    struct mk_str path = mk_request_path(req);
    int err = find_section(mk_request_host_conf(req), path, &conf);
    if (err < 0)
        return err;
    if (!conf || (asks_for_file(req) && comes_after_files(host, conf, path)) != after_files)
        return MK_DECLINED;
    if (forwards_end_here(req))
        return 0;
    mk_gateway_pass(req, mk_gateway_find_route(&host->routes, conf), NULL);
    return 0;
}

static int proxy_request(struct mk_request *req)
{
    const struct host *host = mk_request_host_state(req, &mk_plugin_proxy);
    return host && mk_request_method(req) != MK_CONNECT ? pass_request(req, host, false) : MK_DECLINED;
}

static int proxy_missing(struct mk_request *req)
{
    const struct host *host = mk_request_host_state(req, &mk_plugin_proxy);
    return host && host->tries && asks_for_file(req) ? pass_request(req, host, true) : MK_DECLINED;
}

static int accepts_encoded_slash(const struct mk_host *host, struct mk_str path)
{
    const struct proxy_conf *conf;
    return find_section(host, path, &conf) == 0 && conf ? conf->encoded_slash : 0;
}

/* A path that is passed on is not the file of that name, unless files come first. */
static int allows_path(struct mk_request *req, struct mk_str path)
{
    const struct proxy_conf *conf;
    int err = find_section(mk_request_host_conf(req), path, &conf);
    const struct host *host = mk_request_host_state(req, &mk_plugin_proxy);
    return err < 0 ? err : !conf || comes_after_files(host, conf, path);
}

static bool is_source(const struct mk_host *host, enum mk_source_name kind, struct mk_str name)
{
    struct host *own = mk_host_state(host, &mk_plugin_proxy);
    const struct mk_source_query of = {.host = host, .root = &own->root.folder, .kind = kind, .name = name};
    const size_t pattern = offsetof(struct proxy_conf, gateway.match);
    bool found = false;
    for (const struct proxy_conf *conf = NULL;
         !found && (conf = mk_source_next_section(&of, proxy_sections, pattern, conf));)
        found = own->tries == MK_TRIES_SOME ? mk_source_is_taken(&of, &conf->gateway.match, true)
                                            : mk_gateway_takes_source(&conf->gateway, &of);
    return found || mk_source_is_handled(&of, &mk_plugin_proxy);
}

static void each_program(const struct mk_host *host, mk_program_fn fn, void *ctx)
{
    for (const struct proxy_conf *conf = mk_host_conf(host, proxy_sections); conf;
         conf = mk_host_conf_next(host, proxy_sections, conf))
        mk_gateway_add_program(&conf->gateway, fn, ctx);
}

/* Tells whether a pattern may take a name: those for the whole site by its folders do not. */
static bool may_take(const struct mk_pattern *match)
{
    return match->kind != MK_PATTERN_PREFIX || !mk_source_is_whole_site(match);
}

static bool has_sources(const struct mk_host *host)
{
    const struct proxy_conf *conf = mk_host_conf(host, proxy_sections);
    const struct mk_pattern *handler = mk_host_handler(host, &mk_plugin_proxy, 0);
    while (conf && !may_take(&conf->gateway.match))
        conf = mk_host_conf_next(host, proxy_sections, conf);
    for (unsigned i = 0; handler && !may_take(handler); i++)
        handler = mk_host_handler(host, &mk_plugin_proxy, i);
    return conf || handler;
}

static bool takes_section(const struct mk_host *host, const struct mk_conf_section *type, const void *conf)
{
    const struct host *own = mk_host_state(host, &mk_plugin_proxy);
    (void)type;
    return own && !leaves_files(own, conf);
}

static bool explains_files(const struct mk_host *host, const struct proxy_conf *conf, const struct mk_explain *e)
{
    const struct host *own = mk_host_state(host, &mk_plugin_proxy);
    return own && comes_after_files(own, conf, e->path) &&
           (mk_str_eq(e->method, MK_STR("GET")) || mk_str_eq(e->method, MK_STR("HEAD")));
}

static void explain_host(const struct mk_host *host, struct mk_explain *e)
{
    const struct proxy_conf *conf;
    if (e->phase != MK_EXPLAIN_CONTENT)
        return;
    if (find_section(host, e->path, &conf) < 0)
        mk_explain_add(e, host, NULL, MK_EXPLAIN_ANSWERS,
                       "500, because a pattern of [PROXY] takes too much time for the path");
    else if (conf && explains_files(host, conf, e))
        mk_explain_add(e, host, conf, MK_EXPLAIN_MAYBE, "[PROXY]: passed to %.*s, if TryFiles finds no file",
                       MK_STR_ARG(conf->gateway.to.text));
    else if (conf)
        mk_explain_add(e, host, conf, MK_EXPLAIN_ANSWERS, "[PROXY]: passed to %.*s", MK_STR_ARG(conf->gateway.to.text));
}

/* ── the shell ── */

static int list_backends(struct mk_command_call *call)
{
    return mk_gateway_list_backends(call, &mk_plugin_proxy);
}

static const struct mk_command commands[] = {
    {.name = "backends",
     .arguments = "",
     .help = "the backends of the proxy, with what is counted of each",
     .run = list_backends},
    {0},
};

static const struct mk_plugin_need needs[] = {{"tls", "To", "https://"}, {0}};

static const struct mk_path_hooks path_hooks = {
    .allows_path = allows_path,
    .accepts_encoded_slash = accepts_encoded_slash,
    .on_fallback = proxy_missing,
};

static const struct mk_source_hooks source_hooks = {
    .is_source = is_source,
    .has_sources = has_sources,
    .each_program = each_program,
};

static const struct mk_process_hooks process_hooks = {
    .low_on_descriptors = mk_gateway_shed,
    .low_on_memory = mk_gateway_shed_worker,
};

static const struct mk_inspect_hooks inspect_hooks = {
    .explain = explain_host,
    .takes_section = takes_section,
    .commands = commands,
};

static const struct mk_plugin_interfaces interfaces = {.needs = needs};

MK_PLUGIN(proxy) = {
    MK_PLUGIN_HEAD("proxy", "2.0.0", "passes requests to backends"),
    .flags = MK_PLUGIN_STATE_NEEDED,
    .sections = proxy_sections,
    .start = start_process,
    .stop = mk_gateway_free,
    .generation_start = start_generation,
    .generation_stop = mk_gateway_stop_generation,
    .host_start = start_host,
    .host_stop = stop_host,
    .generation_check = check_generation,
    .worker_start = start_worker,
    .worker_stop = mk_gateway_stop_worker,
    .worker_serve = mk_gateway_serve_worker,
    .on_content = proxy_request,
    .paths = &path_hooks,
    .sources = &source_hooks,
    .process = &process_hooks,
    .inspection = &inspect_hooks,
    .interfaces = &interfaces,
};

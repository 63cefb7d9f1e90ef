// SPDX-License-Identifier: Apache-2.0
/*
 * duda: web services in C. This file is the plugin: its sections, and the way of a request to its service.
 *
 *     generation ─► its services, each once        worker ─► the same services in this thread, by their index
 *     host ─► its services by name, and the one that is its root
 */
#include "common/heap.h"
#include "console/console_serve.h"
#include "crash/crash.h"
#include "log/log.h"
#include "log/message.h"
#include "objects.h"
#include "request/request.h"
#include "route/dispatch.h"
#include "route/error_page.h"
#include "route/router.h"
#include "service/host.h"

#include <monkey/hooks.h>
#include <monkey/inspect.h>

#include <errno.h>

extern const struct mk_plugin mk_plugin_duda;

/* ── directives ── */

static const struct mk_conf_key duda_keys[] = {
    MK_CONF_KEY_PATH(struct duda_conf, services_root, "ServicesRoot", NULL,
                     "The folder of the services: `NAME.duda` for a section [WEB_SERVICE] without `File`."),
    MK_CONF_KEY_PATH(struct duda_conf, packages_root, "PackagesRoot", NULL,
                     "The folder of the packages, `NAME.dpkg`, that services load; without this key "
                     "`lib/monkey/packages` of the installation."),
    MK_CONF_KEY_PATH(struct duda_conf, document_root, "DocumentRoot", NULL,
                     "A folder of files that is served at `/ddr` by all hosts with services."),
    MK_CONF_KEY_BOOL(struct duda_conf, log_limit, "LogLimit", "On",
                     "Limits what each service writes to the server's log by `msg` and `console`, and what the "
                     "framework writes about it, to 10 KB in ten seconds. `Off` is for servers on which services are "
                     "developed, such as those of `dudac`; `LogLevel debug` does the same."),
    {0},
};

static const struct mk_conf_key service_keys[] = {
    MK_CONF_KEY_STRING(struct service_conf, name, "Name", NULL,
                       "The service's name, and the first part of its URLs: `/NAME/`. Letters, digits, `-`, `_` and "
                       "`.`, at most 64. Each service of a host has another one.",
                       .flags = MK_CONF_REQUIRED),
    MK_CONF_KEY_BOOL(struct service_conf, enabled, "Enabled", "On",
                     "Runs the service. With `Off` the section has no effect, and the service's URLs are those of the "
                     "host."),
    MK_CONF_KEY_BOOL(struct service_conf, root, "Root", "Off",
                     "The service gets all paths of the host that no other service has, and its URLs do not begin with "
                     "its name. One service of a host."),
    MK_CONF_KEY_PATH(struct service_conf, file, "File", NULL,
                     "The shared object; without this key `NAME.duda` in `ServicesRoot` of [DUDA]."),
    MK_CONF_KEY_PATH(struct service_conf, document_root, "DocumentRoot", NULL,
                     "A folder of files that are served below the service's URL, where it has no route. With `Root On` "
                     "it takes the place of the host's `DocumentRoot`. All directives for files apply."),
    MK_CONF_KEY_PATH(struct service_conf, conf_dir, "ConfDir", NULL, "The folder of the service's configuration."),
    MK_CONF_KEY_PATH(struct service_conf, data_dir, "DataDir", NULL, "The folder of the service's data."),
    MK_CONF_KEY_PATH(struct service_conf, log_dir, "LogDir", NULL, "The folder of the service's logs."),
    MK_CONF_KEY_STRING(struct service_conf, console, "Console", NULL,
                       "A path below the service's URL, such as `/console/`, at which a page about the service is "
                       "served: routes, calls, errors, latency, memory, messages. It comes before the service's own "
                       "routes. `Off`: there is none, even if the service asks for one (`console->dashboard()`); "
                       "without this key it gets the path that the service asks for."),
    MK_CONF_KEY_NETWORKS(
        struct service_conf, console_allow, "ConsoleAllow", "127.0.0.0/8 ::1 unix",
        "The clients that get the console; others get the status 403, as do requests of proxies that "
        "are not in `TrustedProxies`, and requests that name another host than this one, `localhost` or an "
        "address. Rules and logins by path apply as well."),
    {0},
};

enum { DUDA, WEB_SERVICE };

static const struct mk_conf_section sections[] = {
    {.name = "DUDA",
     .scope = MK_CONF_SCOPE_SERVER,
     .size = sizeof(struct duda_conf),
     .keys = duda_keys,
     .doc = MK_CONF_DOC("Where web services are found.")},
    {.name = "WEB_SERVICE",
     .scope = MK_CONF_SCOPE_HOST,
     .flags = MK_CONF_REPEAT | MK_CONF_HOST_ONLY | MK_CONF_SERVES,
     .size = sizeof(struct service_conf),
     .keys = service_keys,
     .doc = MK_CONF_DOC("Runs a web service for this host; for several services the section appears several times. A "
                        "service that cannot be loaded or started is a warning: the others run, and its URLs get the "
                        "status 503. The folders must exist.")},
    {0},
};

/* ── generations ── */

struct duda_generation {
    struct duda_host *first;
    unsigned n_services; /* of all hosts */
};

struct duda_worker {
    unsigned n;
    bool retired;
    struct crash_thread *thread;
    struct service_worker *items[];
};

static int start_plugin(void **ret_state)
{
    guard_start();
    *ret_state = log_open_writer() == 0 ? service_set_new(&mk_plugin_duda, objects_bind, features) : NULL;
    return *ret_state ? 0 : -ENOMEM;
}

static void stop_plugin(void *state)
{
    service_set_free(state);
    log_stop_writer();
    crash_stop();
}

/*
 * Handlers are installed by each generation, because another copy of this plugin may have had them; also for a check,
 * which loads services.
 */
static int start_generation(struct mk_generation *g, void **ret_state)
{
    struct service_set *set = mk_generation_plugin_state(g, &mk_plugin_duda);
    crash_start();
    service_set_reap(set);
    *ret_state = heap_zalloc(sizeof(struct duda_generation));
    if (!*ret_state)
        return -ENOMEM;
    return 0;
}

static void stop_generation(struct mk_generation *g, void *state)
{
    struct duda_generation *all = state;
    (void)g;
    while (all->first) {
        struct duda_host *h = all->first;
        all->first = h->next;
        host_close(h);
    }
    heap_free(all, sizeof(*all));
}

/* The services of a host belong to the generation, which ends them. */
static int start_host(struct mk_host *host, void **ret_state)
{
    const struct mk_generation *g = mk_host_generation(host);
    struct duda_generation *all = mk_generation_state(g, &mk_plugin_duda);
    struct service_set *set = mk_generation_plugin_state(g, &mk_plugin_duda);
    struct duda_host *h = NULL;
    if (!mk_host_conf(host, &sections[WEB_SERVICE]))
        return 0;
    int err =
        host_open(host, set, &sections[WEB_SERVICE], mk_host_server_conf(host, &sections[DUDA]), &all->n_services, &h);
    if (!h)
        return err;
    h->next = all->first;
    all->first = h;
    *ret_state = h;
    return err;
}

static int check_generation(struct mk_generation *g, void *state)
{
    const struct duda_conf *conf = mk_generation_conf(g, &sections[DUDA]);
    struct duda_generation *all = state;
    int result = 0;
    if (all->first)
        host_check_packages(all->first, conf);
    for (struct duda_host *h = all->first; h && result != -ENOMEM; h = h->next) {
        int err = host_run(h, conf, mk_generation_is_check(g));
        result = err < 0 ? err : result;
    }
    return result;
}

/* ── workers ── */

static size_t worker_bytes(unsigned n)
{
    return sizeof(struct duda_worker) + n * sizeof(struct service_worker *);
}

static void stop_worker(struct mk_worker *worker, void *state)
{
    struct duda_worker *w = state;
    for (unsigned i = 0; i < w->n; i++) {
        if (w->items[i])
            service_worker_put(w->items[i], worker, w->retired);
    }
    crash_leave_thread(w->thread);
    heap_free(w, worker_bytes(w->n));
}

static int start_services(struct mk_worker *worker, struct duda_worker *w, const struct duda_host *h)
{
    for (unsigned i = 0; i < h->n; i++) {
        const struct host_service *e = &h->services[i];
        if (e->service && !(w->items[e->index] = service_worker_get(e->service, worker)))
            return -ENOMEM;
    }
    return 0;
}

static const struct duda_conf *get_conf(struct mk_worker *worker)
{
    return mk_generation_conf(mk_worker_generation(worker), &sections[DUDA]);
}

static int start_worker(struct mk_worker *worker, void **ret_state)
{
    const struct duda_generation *all = mk_generation_state(mk_worker_generation(worker), &mk_plugin_duda);
    struct duda_worker *w = heap_zalloc(worker_bytes(all->n_services));
    int err = w ? 0 : -ENOMEM;
    if (err < 0)
        return err;
    w->n = all->n_services;
    message_begin_limit(get_conf(worker)->log_limit);
    crash_use_log();
    w->thread = w->n ? crash_enter_thread() : NULL;
    guard_enter_thread();
    for (const struct duda_host *h = all->first; h && err == 0; h = h->next)
        err = start_services(worker, w, h);
    if (err < 0)
        stop_worker(worker, w);
    else
        *ret_state = w;
    return err;
}

static void serve_worker(struct mk_worker *worker, void *state)
{
    struct duda_worker *w = state;
    for (unsigned i = 0; i < w->n; i++)
        if (w->items[i])
            service_worker_serve(w->items[i], worker);
    if (mk_worker_index(worker) == 0)
        message_set_limit(get_conf(worker)->log_limit);
}

static void retire_worker(struct mk_worker *worker, void *state)
{
    struct duda_worker *w = state;
    (void)worker;
    w->retired = true;
    for (unsigned i = 0; i < w->n; i++)
        if (w->items[i])
            service_worker_retire(w->items[i]);
}

/* ── requests ── */

static int call_service(struct mk_request *req, const struct host_service *e, struct mk_str path)
{
    enum console_view view = console_serve_find(e, path);
    if (MK_UNLIKELY(view != CONSOLE_NONE))
        return console_serve_view(req, e, view);
    const struct duda_worker *w = mk_worker_state(mk_request_worker(req), &mk_plugin_duda);
    return dispatch_request(req, w->items[e->index], path);
}

static int handle_request(struct mk_request *req)
{
    const struct duda_host *h = mk_request_host_state(req, &mk_plugin_duda);
    struct mk_str rest;
    const struct host_service *e = h ? host_find(h, mk_request_path(req), &rest) : NULL;
    if (!e)
        return MK_DECLINED;
    if (e->service)
        return call_service(req, e, rest);
    mk_response_error(req, 503);
    return 0;
}

/* A path of a service is that of a file only if none of its routes takes it. */
static int allows_path(struct mk_request *req, struct mk_str path)
{
    const struct duda_host *h = mk_request_host_state(req, &mk_plugin_duda);
    struct mk_str rest;
    const struct host_service *e = h ? host_find(h, path, &rest) : NULL;
    if (!e)
        return 1;
    return e->service && console_serve_find(e, rest) == CONSOLE_NONE && dispatch_leaves_file(e->service, rest);
}

/* Returns what the worker has of the service whose URL is above the path; NULL: there is none. */
static struct service_worker *find_worker(struct mk_request *req)
{
    const struct duda_host *h = mk_request_host_state(req, &mk_plugin_duda);
    struct mk_str rest;
    const struct host_service *e = h ? host_find(h, mk_request_path(req), &rest) : NULL;
    if (!e || !e->service)
        return NULL;
    const struct duda_worker *w = mk_worker_state(mk_request_worker(req), &mk_plugin_duda);
    return w->items[e->index];
}

/* A service gives the errors below its URL its own pages, those of its files included. Not on the stack of others. */
static __attribute__((noinline)) void replace_page(struct mk_request *req, const struct duda_request *dr)
{
    struct service_worker *worker = dr ? dr->worker : find_worker(req);
    if (worker)
        error_page_replace(req, worker);
}

static void handle_response(struct mk_request *req)
{
    struct duda_request *dr = mk_request_state(req, &mk_plugin_duda);
    if (MK_UNLIKELY(mk_response_is_default_error(req)))
        replace_page(req, dr);
    if (dr)
        dispatch_before_head(dr);
}

static void finish_request(struct mk_request *req)
{
    struct duda_request *dr = mk_request_state(req, &mk_plugin_duda);
    if (dr)
        dispatch_finish(dr);
}

/* ── for operators ── */

static enum mk_method find_method(struct mk_str name)
{
    mk_methods bit = mk_routes_read_methods(name);
    return bit ? (enum mk_method)__builtin_ctz(bit) : MK_METHOD_OTHER;
}

static void explain_route(const struct host_service *found, const struct mk_host *host, struct mk_explain *e,
                          struct mk_str rest)
{
    struct mk_route_match match = {.route = NULL};
    struct mk_str name = found->conf->name;
    enum router_result result = router_match(found->service, find_method(e->method), rest, e->query.p, &match);
    switch (result) {
    case ROUTER_FOUND:
        mk_explain_add(e, host, found->conf, MK_EXPLAIN_ANSWERS, "the service %.*s, by the route %.*s",
                       MK_STR_ARG(name), MK_STR_ARG(match.route->pattern));
        return;
    case ROUTER_SLASH:
    case ROUTER_SLASH_OLD:
        mk_explain_add(e, host, found->conf, MK_EXPLAIN_ANSWERS,
                       "the service %.*s redirects to the path with a slash behind it", MK_STR_ARG(name));
        return;
    default:
        mk_explain_add(e, host, found->conf,
                       dispatch_leaves_file(found->service, rest) ? MK_EXPLAIN_NOTE : MK_EXPLAIN_ANSWERS,
                       "the service %.*s has no route for %s: %s", MK_STR_ARG(name),
                       result == ROUTER_METHOD ? "the method" : "the path",
                       dispatch_leaves_file(found->service, rest) ? "its files are asked" : "it answers 404 or 405");
    }
}

/* Tells an operator which service and route a request meets. */
static void explain_request(const struct mk_host *host, struct mk_explain *e)
{
    const struct duda_host *h = mk_host_state(host, &mk_plugin_duda);
    struct mk_str rest;
    const struct host_service *found = h && e->phase == MK_EXPLAIN_CONTENT ? host_find(h, e->path, &rest) : NULL;
    if (!found)
        return;
    if (found->service)
        explain_route(found, host, e, rest);
    else
        mk_explain_add(e, host, found->conf, MK_EXPLAIN_ANSWERS, "503, because the service %.*s could not be loaded",
                       MK_STR_ARG(found->conf->name));
}

static const struct mk_path_hooks path_hooks = {.allows_path = allows_path};

static const struct mk_process_hooks process_hooks = {.reopen = log_reopen_all};

static const struct mk_inspect_hooks inspect_hooks = {.explain = explain_request};

MK_PLUGIN(duda) = {
    MK_PLUGIN_HEAD("duda", "2.0.0", "web services in C"),
    .sections = sections,
    .start = start_plugin,
    .stop = stop_plugin,
    .generation_start = start_generation,
    .generation_stop = stop_generation,
    .generation_check = check_generation,
    .host_start = start_host,
    .worker_start = start_worker,
    .worker_serve = serve_worker,
    .worker_stop = stop_worker,
    .worker_retire = retire_worker,
    .on_content = handle_request,
    .on_response = handle_response,
    .on_done = finish_request,
    .paths = &path_hooks,
    .process = &process_hooks,
    .inspection = &inspect_hooks,
};

// SPDX-License-Identifier: Apache-2.0
/*
 * duda: web services in C. This file is the plugin: its sections, and the way of a request to its service.
 *
 *     generation ─► its services, each once        worker ─► the same services in this thread, by their index
 *     host ─► its services by name, and the one that is its root
 */
#include "current.h"
#include "heap.h"
#include "request.h"
#include "router.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>

extern const struct mk_plugin mk_plugin_duda;

enum { ERROR_BYTES_MAX = 2048 };

/* ── directives ── */

struct duda_conf {
    struct mk_str services_root, packages_root, document_root;
};

static const struct mk_conf_key duda_keys[] = {
    MK_CONF_KEY_PATH(struct duda_conf, services_root, "ServicesRoot", NULL,
                     "The folder of the services: `NAME.duda` for a section [WEB_SERVICE] without `File`."),
    MK_CONF_KEY_PATH(struct duda_conf, packages_root, "PackagesRoot", NULL, "The folder of the packages: `NAME.dpkg`."),
    MK_CONF_KEY_PATH(struct duda_conf, document_root, "DocumentRoot", NULL, "The folder that is served at `/ddr`."),
    {0},
};

static const struct mk_conf_key service_keys[] = {
    MK_CONF_KEY_STRING(struct service_conf, name, "Name", NULL, "The service's name, and the first part of its URLs.",
                       .flags = MK_CONF_REQUIRED),
    MK_CONF_KEY_BOOL(struct service_conf, enabled, "Enabled", "On", "Loads the service."),
    MK_CONF_KEY_BOOL(struct service_conf, root, "Root", "Off",
                     "The service gets all paths of the host, and its URLs do not begin with its name."),
    MK_CONF_KEY_PATH(struct service_conf, file, "File", NULL,
                     "The shared object; without this key `ServicesRoot`/`Name`.duda."),
    MK_CONF_KEY_PATH(struct service_conf, document_root, "DocumentRoot", NULL,
                     "A folder of files that are served below the service's URL."),
    MK_CONF_KEY_PATH(struct service_conf, conf_dir, "ConfDir", NULL, "The folder of the service's configuration."),
    MK_CONF_KEY_PATH(struct service_conf, data_dir, "DataDir", NULL, "The folder of the service's data."),
    MK_CONF_KEY_PATH(struct service_conf, log_dir, "LogDir", NULL, "The folder of the service's logs."),
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
     .flags = MK_CONF_REPEAT,
     .size = sizeof(struct service_conf),
     .keys = service_keys,
     .doc = MK_CONF_DOC("Runs a web service for this host.")},
    {0},
};

/* ── generations ── */

/* A service in a generation. */
struct entry {
    struct entry *next; /* in the generation */
    struct service *service;
    unsigned index; /* in struct duda_worker */
};

struct duda_generation {
    struct entry *first;
    unsigned n;
};

struct duda_host {
    const struct entry *entries[16];
    unsigned n;
    const struct entry *root;
};

struct duda_worker {
    unsigned n;
    struct service_worker *items[];
};

static int start_generation(struct mk_generation *g, void **ret_state)
{
    (void)g;
    *ret_state = heap_zalloc(sizeof(struct duda_generation));
    return *ret_state ? 0 : -ENOMEM;
}

static void stop_generation(struct mk_generation *g, void *state)
{
    struct duda_generation *all = state;
    (void)g;
    while (all->first) {
        struct entry *e = all->first;
        all->first = e->next;
        service_put(e->service);
        heap_free(e, sizeof(*e));
    }
    heap_free(all, sizeof(*all));
}

static const struct entry *add_entry(struct duda_generation *all, struct service *s)
{
    struct entry *e = heap_zalloc(sizeof(*e));
    if (e) {
        *e = (struct entry){all->first, s, all->n++};
        all->first = e;
    }
    return e;
}

static void open_service(struct mk_host *host, struct duda_host *h, const struct service_conf *conf)
{
    const struct duda_conf *server = mk_host_server_conf(host, &sections[DUDA]);
    char text[ERROR_BYTES_MAX], path[PATH_MAX];
    struct mk_buf error;
    mk_buf_init_fixed(&error, text, sizeof(text));
    struct service_conf full = *conf;
    if (!full.file.len) {
        snprintf(path, sizeof(path), "%.*s/%.*s.duda", MK_STR_ARG(server->services_root), MK_STR_ARG(conf->name));
        full.file = mk_str_c(path);
    }
    struct service *s = service_open(mk_host_name(host, 0), &full, &error);
    if (!s) {
        mk_host_warn(host, conf, offsetof(struct service_conf, name), 0, "the service cannot be loaded: %s",
                     mk_buf_cstr(&error));
        return;
    }
    const struct entry *e = add_entry(mk_generation_state(mk_host_generation(host), &mk_plugin_duda), s);
    if (e && conf->root)
        h->root = e;
    else if (e)
        h->entries[h->n++] = e;
}

static int start_host(struct mk_host *host, void **ret_state)
{
    const struct service_conf *conf = mk_host_conf(host, &sections[WEB_SERVICE]);
    if (!conf)
        return 0;
    struct duda_host *h = heap_zalloc(sizeof(*h));
    if (!h)
        return -ENOMEM;
    for (; conf; conf = mk_host_conf_next(host, &sections[WEB_SERVICE], conf)) {
        if (conf->enabled)
            open_service(host, h, conf);
    }
    *ret_state = h;
    return 0;
}

static void stop_host(struct mk_host *host, void *state)
{
    (void)host;
    heap_free(state, sizeof(struct duda_host));
}

static int check_generation(struct mk_generation *g, void *state)
{
    struct duda_generation *all = state;
    (void)g;
    for (struct entry *e = all->first; e; e = e->next) {
        char text[ERROR_BYTES_MAX];
        struct mk_buf error;
        mk_buf_init_fixed(&error, text, sizeof(text));
        if (service_run(e->service, &error) < 0)
            mk_log_error("service %s: %s", e->service->self.name.data, mk_buf_cstr(&error));
    }
    return 0;
}

/* ── workers ── */

static size_t worker_bytes(unsigned n)
{
    return sizeof(struct duda_worker) + n * sizeof(struct service_worker *);
}

static void stop_worker(struct mk_worker *worker, void *state)
{
    struct duda_worker *w = state;
    (void)worker;
    for (unsigned i = 0; i < w->n; i++) {
        if (w->items[i])
            service_worker_put(w->items[i]);
    }
    heap_free(w, worker_bytes(w->n));
}

static int start_worker(struct mk_worker *worker, void **ret_state)
{
    struct duda_generation *all = mk_generation_state(mk_worker_generation(worker), &mk_plugin_duda);
    struct duda_worker *w = heap_zalloc(worker_bytes(all->n));
    if (!w)
        return -ENOMEM;
    w->n = all->n;
    for (struct entry *e = all->first; e; e = e->next) {
        w->items[e->index] = service_worker_get(e->service, mk_worker_loop(worker));
        if (!w->items[e->index]) {
            stop_worker(worker, w);
            return -ENOMEM;
        }
    }
    *ret_state = w;
    return 0;
}

/* ── requests ── */

/* Returns the service of a path, and what of the path is below its URL. */
static const struct entry *find_entry(const struct duda_host *h, struct mk_str path, struct mk_str *ret_rest)
{
    for (unsigned i = 0; i < h->n; i++) {
        const struct entry *e = h->entries[i];
        struct mk_str url = mk_str(e->service->self.url.data, e->service->self.url.len);
        if (!mk_str_starts(path, url) || (path.len > url.len && path.p[url.len] != '/'))
            continue;
        *ret_rest = mk_str(path.p + url.len, path.len - url.len);
        return e;
    }
    *ret_rest = path;
    return h->root;
}

static int handle_request(struct mk_request *req)
{
    const struct duda_host *h = mk_request_host_state(req, &mk_plugin_duda);
    struct mk_str rest;
    const struct entry *e = h ? find_entry(h, mk_request_path(req), &rest) : NULL;
    if (!e || e->service->state != SERVICE_RUNS)
        return MK_DECLINED;
    const struct duda_worker *w = mk_worker_state(mk_request_worker(req), &mk_plugin_duda);
    duda_request_fn handler = router_find(e->service->router, mk_request_method(req), rest.len ? rest : MK_STR("/"));
    if (!handler)
        return MK_DECLINED;
    struct duda_request *dr = request_new(req, w->items[e->index]);
    if (!dr)
        return -ENOMEM;
    request_call(dr, handler);
    return 0;
}

MK_PLUGIN(duda) = {
    MK_PLUGIN_HEAD("duda", "2.0.0", "web services in C"),
    .sections = sections,
    .generation_start = start_generation,
    .generation_stop = stop_generation,
    .generation_check = check_generation,
    .host_start = start_host,
    .host_stop = stop_host,
    .worker_start = start_worker,
    .worker_stop = stop_worker,
    .on_content = handle_request,
};

// SPDX-License-Identifier: Apache-2.0
/*
 * Asks the plugins about paths of a host other than that of the request (<monkey/plugin.h>): may the client GET them,
 * and which file is there; and whether one of them claims the request. And what a plugin needs to work on paths without
 * a request.
 */
#include "server/worker/thread.h"

#include <monkey/base/escape.h>
#include <monkey/file_cache.h>
#include <monkey/hooks.h>

#include "http/message/uri.h"
#include "http/request.h"
#include "server/generation/handlers.h"

#include <assert.h>
#include <errno.h>

/* Returns true if [HANDLERS] gives the path to a plugin that makes content, and does not handle `req` now. */
static bool has_other_handler(const struct mk_request *req, const struct mk_generation *g,
                              const struct mk__handler *handler)
{
    return handler && !MK_PLUGIN_HOOK(g->plugins[handler->index], paths, open_path) &&
           handler->index != req->hook % MK__PLUGINS_MAX;
}

/*
 * Asks the plugins in their order, but for `caller` (NULL: none). Their decisions about access are those for this path,
 * not for the request.
 */
static int ask_plugins(struct mk_request *req, const struct mk_plugin *caller, struct mk_str path)
{
    const struct mk_generation *g = mk_worker_generation(req->worker);
    uint16_t access = req->access;
    bool defers = req->defers_denial;
    int r = 1;
    req->access = 0;
    req->defers_denial = true;
    for (unsigned i = 0; i < g->n_plugins && r > 0; i++)
        if (MK_PLUGIN_HOOK(g->plugins[i], paths, allows_path) && g->plugins[i] != caller)
            r = g->plugins[i]->paths->allows_path(req, path);
    if (r > 0 && req->access >= 400)
        r = 0;
    req->access = access;
    req->defers_denial = defers;
    return r;
}

int mk_request_allows_path(struct mk_request *req, struct mk_str path)
{
    const struct mk_generation *g = mk_worker_generation(req->worker);
    const struct mk__handler *handler;
    assert(path.len && path.p[0] == '/' && path.p[path.len] == '\0');
    if (mk_host_is_source(mk_request_host_conf(req), MK_SOURCE_PATH, path))
        return 0;
    int r = mk__handlers_find(mk_request_host_conf(req), path, &handler);
    if (r < 0 || has_other_handler(req, g, handler))
        return r;
    return ask_plugins(req, NULL, path);
}

int mk_request_allows_source(struct mk_request *req, const struct mk_plugin *plugin, struct mk_str path)
{
    const struct mk_generation *g = mk_worker_generation(req->worker);
    const struct mk__handler *handler;
    assert(path.len && path.p[0] == '/' && path.p[path.len] == '\0');
    int r = mk__handlers_find(mk_request_host_conf(req), path, &handler);
    if (r < 0 || (handler && g->plugins[handler->index] != plugin))
        return r < 0 ? r : 0;
    return ask_plugins(req, plugin, path);
}

/* Tells whether a plugin with content says that the path is its own. */
static bool is_own_path(struct mk_request *req, const struct mk_plugin *plugin, struct mk_str path)
{
    uint16_t access = req->access;
    bool is_own =
        plugin->on_content && MK_PLUGIN_HOOK(plugin, paths, allows_path) && plugin->paths->allows_path(req, path) == 0;
    req->access = access;
    return is_own;
}

const struct mk_plugin *mk_request_find_responder(struct mk_request *req, struct mk_str path)
{
    const struct mk_generation *g = mk_worker_generation(req->worker);
    const struct mk__handler *handler;
    assert(path.len && path.p[0] == '/' && path.p[path.len] == '\0');
    if (mk__handlers_find(mk_request_host_conf(req), path, &handler) == 0 && has_other_handler(req, g, handler))
        return g->plugins[handler->index];
    for (unsigned i = 0; i < g->n_plugins; i++)
        if (i != req->hook % MK__PLUGINS_MAX && is_own_path(req, g->plugins[i], path))
            return g->plugins[i];
    return NULL;
}

int mk_host_open_path(const struct mk_host *host, struct mk_str path, uint32_t flags)
{
    const struct mk_generation *g = host->generation;
    int r = -ENOENT;
    assert(path.len && path.p[0] == '/' && path.p[path.len] == '\0');
    if (!(flags & MK_OPEN_SOURCE) && mk_host_is_source(host, MK_SOURCE_PATH, path))
        return r;
    for (unsigned i = 0; i < g->n_plugins && r == -ENOENT; i++)
        if (MK_PLUGIN_HOOK(g->plugins[i], paths, open_path))
            r = g->plugins[i]->paths->open_path(host, path, flags);
    return r;
}

bool mk_request_is_claimed(struct mk_request *req)
{
    const struct mk_generation *g = mk_worker_generation(req->worker);
    bool is_claimed = false;
    for (unsigned i = 0; i < g->n_plugins && !is_claimed; i++)
        is_claimed = MK_PLUGIN_HOOK(g->plugins[i], paths, claims) && g->plugins[i]->paths->claims(req);
    return is_claimed;
}

/* ── paths without a request ── */

const struct mk_file_server *mk_generation_file_server(const struct mk_generation *g)
{
    for (unsigned i = 0; i < g->n_plugins; i++)
        if (MK_PLUGIN_HOOK(g->plugins[i], interfaces, file_server))
            return MK_PLUGIN_HOOK(g->plugins[i], interfaces, file_server);
    return NULL;
}

struct mk_str mk_host_mime(const struct mk_host *host, struct mk_str path)
{
    return mk__mime_find(&host->generation->mime, path);
}

uint64_t mk_host_mime_id(const struct mk_host *host)
{
    return host->generation->mime.id;
}

ssize_t mk_path_normalize(struct mk_str raw, char *out, size_t size)
{
    return mk__uri_decode_path(raw, out, size);
}

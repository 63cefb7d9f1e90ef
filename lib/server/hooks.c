// SPDX-License-Identifier: Apache-2.0
/*
 * The way of a request past the plugins: host, access, content, response, done. HTTP calls in here; nobody
 * here knows which protocol carried the request.
 */
#include "server/worker.h"

#include "http/request.h"
#include "server/plugin.h"

static const struct mk_host *host_of(const struct mk_request *req)
{
    return req->app_data;
}

/* A plugin's word: did it take the request? An error is answered here. */
static bool is_taken(struct mk_request *req, const struct mk_plugin *plugin, int r)
{
    if (r < 0) {
        mk_log_error("plugin %s: %s", plugin->name, strerror(-r));
        mk_response_error(req, 500);
    }
    return r != MK_DECLINED;
}

/* What needs no plugin: methods that nobody could know, and OPTIONS for the server as a whole. */
static bool answer_at_once(struct mk_request *req)
{
    if (mk_request_method(req) == MK_METHOD_OTHER) {
        mk_response_error(req, 501);
        return true;
    }
    if (!req->head.asterisk)
        return false;
    mk_response_allow(req, MK_STR("GET, HEAD, OPTIONS"));
    return true;
}

static void on_request(struct mk_request *req, void *ctx)
{
    const struct mk__worker *w = ctx;
    const struct mk__generation *g = w->generation;

    req->app_data = mk__generation_host(g, mk_request_host(req));
    if (answer_at_once(req))
        return;
    for (unsigned i = 0; i < g->n_plugins; i++)
        if (g->plugins[i]->on_request && is_taken(req, g->plugins[i], g->plugins[i]->on_request(req)))
            return;
    for (unsigned i = 0; i < g->n_plugins; i++)
        if (g->plugins[i]->on_content && is_taken(req, g->plugins[i], g->plugins[i]->on_content(req)))
            return;
    mk_response_error(req, 404);
}

static void on_response(struct mk_request *req, void *ctx)
{
    const struct mk__worker *w = ctx;
    const struct mk__generation *g = w->generation;
    for (unsigned i = 0; i < g->n_plugins; i++)
        if (g->plugins[i]->on_response)
            g->plugins[i]->on_response(req);
}

static void on_done(struct mk_request *req, void *ctx)
{
    const struct mk__worker *w = ctx;
    const struct mk__generation *g = w->generation;
    for (unsigned i = 0; i < g->n_plugins; i++)
        if (g->plugins[i]->on_done)
            g->plugins[i]->on_done(req);
}

static struct mk_str find_mime(const struct mk_request *req, struct mk_str path, void *ctx)
{
    const struct mk__worker *w = ctx;
    (void)req;
    return mk__mime_of(&w->generation->mime, path);
}

/* Draining ends with the last connection. */
static void on_closed(void *ctx)
{
    struct mk__worker *w = ctx;
    if (w->http.draining && mk_list_empty(&w->http.live))
        mk__loop_stop(&w->loop);
}

const struct mk__http_app mk__hooks_app = {
    .request = on_request,
    .response = on_response,
    .done = on_done,
    .mime = find_mime,
    .closed = on_closed,
};

/* ── what plugins may ask ── */

void *mk_request_host_state(const struct mk_request *req, const struct mk_plugin *plugin)
{
    const struct mk_host *host = host_of(req);
    if (!host)
        return NULL; /* the head was not readable: no host was chosen */
    for (unsigned i = 0; i < host->generation->n_plugins; i++)
        if (host->generation->plugins[i] == plugin)
            return host->states[i];
    return NULL;
}

bool mk_request_aborted(const struct mk_request *req)
{
    return req->aborted;
}

uint64_t mk_request_bytes_sent(const struct mk_request *req)
{
    return req->sent_bytes;
}

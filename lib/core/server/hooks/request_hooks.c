// SPDX-License-Identifier: Apache-2.0
/*
 * Calls the plugins' hooks for a request: on_head, on_request, on_content, on_response, on_done. HTTP calls these
 * functions, which do not depend on the protocol version. They run in the worker's thread.
 */
#include "server/worker/thread.h"

#include "http/request_extra.h"
#include "http/h1/h1.h"
#include "http/h2/h2.h"
#include "server/hooks/conn_hooks.h"
#include "server/counts.h"
#include "server/hooks/fallback.h"
#include "server/generation/handlers.h"
#include "server/plugins/module.h"
#include "server/generation/path_limits.h"

#include <monkey/hooks.h>
#include <monkey/program.h>

#include <assert.h>
#include <errno.h>

/* An exchange ends under the generation that it began with. */
static struct mk_generation *get_generation(const struct mk_request *req)
{
    const struct mk_worker *worker = req->worker;
    assert(worker);
    return worker->generation;
}

static const struct mk_host *get_host(const struct mk_request *req)
{
    return req->app_data;
}

/* Returns a bit for each plugin whose hook is called for the requests of a host. */
static uint32_t get_hooks(const struct mk_generation *g, const struct mk_host *host, unsigned hook)
{
    uint32_t skipped = host ? host->skipped : g->skipped;
    return g->hooks[hook] & ~skipped;
}

/* Returns what a plugin makes of a path of the request's host with an encoded slash. */
static int accept_slash(const struct mk_plugin *plugin, const struct mk_host *host, struct mk_str path)
{
    return MK_PLUGIN_HOOK(plugin, paths, accepts_encoded_slash) ? plugin->paths->accepts_encoded_slash(host, path)
                                                                : MK_ENCODED_SLASH_REFUSE;
}

/*
 * req->hook counts the calls until a plugin takes the request: MK__PLUGINS_MAX for each of MK__HOOK_HEAD, REQUEST and
 * CONTENT, of which those are made whose plugin has the hook.
 */
static int call_hook(struct mk_request *req, const struct mk_generation *g)
{
    const struct mk_plugin *plugin = g->plugins[req->hook % MK__PLUGINS_MAX];
    unsigned hook = req->hook / MK__PLUGINS_MAX;
    if (hook == MK__HOOK_HEAD)
        return plugin->on_head(req);
    if (hook == MK__HOOK_REQUEST)
        return plugin->on_request(req);
    if (MK_UNLIKELY(req->has_encoded_slash) && accept_slash(plugin, get_host(req), req->path) != MK_ENCODED_SLASH_KEEP)
        return MK_DECLINED;
    return plugin->on_content(req);
}

/* All plugins have declined the request. */
static void respond_unhandled(struct mk_request *req)
{
    if (req->has_encoded_slash) /* the plugin static knows whether a section refuses it */
        mk_request_set_reason(req, MK_REASON_ENCODED_SLASH);
    if (req->head.asterisk) { /* OPTIONS * asks for the server itself, RFC 9110 section 9.3.7 */
        mk_response_set_status(req, 204);
        mk_response_end(req);
        return;
    }
    mk_response_error(req, mk_request_method(req) == MK_METHOD_OTHER ? 501 : 404);
}

/* Before the first on_content: if a line of [HANDLERS] matches, only its plugin is asked. */
static MK_NOINLINE void choose_handler(struct mk_request *req, const struct mk_host *host)
{
    const struct mk__handler *handler;
    if (mk__handlers_find(host, mk_request_path(req), &handler) < 0)
        mk_response_error(req, 500); /* unknown whether a line matches: another plugin might show protected content */
    if (!handler)
        return;
    req->hook = MK__HOOK_CONTENT * MK__PLUGINS_MAX + handler->index;
    req->hook_end = req->hook + 1;
}

/* `limits` NULL: it is not known which ones hold. */
static void set_limits(struct mk_request *req, const struct mk__http_limits *limits)
{
    if (limits && mk__extra_has_wait(req))
        mk__extra_set_limits(req, limits);
    else if (limits)
        req->limits = limits;
    if (!limits)
        mk_response_error(req, 500);
    else if (req->head.body_bytes > limits->body_bytes_max)
        mk__request_reject(req, 413);
}

/* After the last on_head, which may have changed the path, and before the body is read. */
static MK_NOINLINE void choose_limits(struct mk_request *req, const struct mk_host *host)
{
    set_limits(req, mk__path_limits_find(host, mk_request_path(req)));
}

/*
 * The request leads to another path: the section of [LIMITS] for that one holds, but the lower MaxBodySize of both.
 * Returns whether the request continues.
 */
static bool add_limits(struct mk_request *req, const struct mk_host *host)
{
    if (!host->path_limits)
        return true;
    const struct mk__http_limits *limits = mk__path_limits_find(host, mk_request_path(req));
    if (limits == &host->limits)
        return true;
    if (limits && limits->body_bytes_max > req->limits->body_bytes_max) {
        struct mk__http_limits *copy = mk_arena_alloc(&req->arena, sizeof(*copy));
        if (!copy) {
            mk_response_error(req, 503);
            return false;
        }
        *copy = *limits;
        copy->body_bytes_max = req->limits->body_bytes_max;
        limits = copy;
    }
    set_limits(req, limits);
    return req->response_state == MK__RESPONSE_OPEN;
}

/* Logs an error of the plugin that has the request, with the path of the client first. */
static void log_plugin_error(struct mk_request *req, const char *what)
{
    const struct mk_generation *g = get_generation(req);
    struct mk_str host = mk_request_host(req), path = mk_request_path(req), original = mk_request_original_path(req);
    bool is_same = mk_str_eq(path, original);
    mk_request_log(req, MK_LOG_ERROR, "plugin %s: %s (%.*s%.*s%s%.*s)", g->plugins[req->hook % MK__PLUGINS_MAX]->name,
                   what, MK_STR_ARG(host), MK_STR_ARG(original), is_same ? "" : ", by ",
                   MK_STR_ARG(is_same ? MK_STR("") : path));
}

/* A plugin has failed, or has done what it may not. */
static MK_COLD void respond_failed(struct mk_request *req, int err)
{
    log_plugin_error(req, strerror(-err));
    mk_response_error(req, 500);
}

/* on_content of all plugins has declined the request. */
static MK_NOINLINE void fall_back(struct mk_request *req, const struct mk_generation *g)
{
    int r = mk__fallback_call(req, g);
    if (r != MK_DECLINED) /* the file was missing, which is not why this response is as it is */
        mk_request_set_reason(req, MK_REASON_NONE);
    if (r < 0)
        respond_failed(req, r);
    else if (r == MK_DECLINED)
        respond_unhandled(req);
}

/* Calls a hook of a plugin. Returns whether the plugin takes the request. */
static inline bool is_taken(struct mk_request *req, const struct mk_generation *g)
{
    int r = call_hook(req, g);
    bool has_begun = req->response_state == MK__RESPONSE_OPEN && (req->first || req->output_state >= MK__OUTPUT_HEAD);
    if (r == MK_DECLINED && has_begun)
        r = -EPROTO; /* a plugin that declines must not have begun a response */
    if (r < 0)
        respond_failed(req, r);
    return r != MK_DECLINED || req->response_state != MK__RESPONSE_OPEN;
}

/* Calls the hooks from req->hook on, until a plugin takes the request. */
static MK_HOT void run_hooks(struct mk_request *req, const struct mk_generation *g, const struct mk_host *host)
{
    assert(req->hook_end <= MK__HOOK_RESPONSE * MK__PLUGINS_MAX && req->hook <= req->hook_end);
    for (; req->hook < req->hook_end; req->hook++) {
        /* what the server does itself between two hooks */
        if (req->hook == MK__HOOK_REQUEST * MK__PLUGINS_MAX && host->path_limits)
            choose_limits(req, host);
        if (req->hook == MK__HOOK_CONTENT * MK__PLUGINS_MAX && host->handlers.n)
            choose_handler(req, host);
        if (req->response_state != MK__RESPONSE_OPEN)
            return;
        /* moves to the next plugin that has the hook */
        uint32_t left = get_hooks(g, host, req->hook / MK__PLUGINS_MAX) >> req->hook % MK__PLUGINS_MAX;
        if (left)
            req->hook += (unsigned)__builtin_ctz(left);
        else
            req->hook |= MK__PLUGINS_MAX - 1;
        if (left && req->hook < req->hook_end && is_taken(req, g))
            return;
    }
    fall_back(req, g);
}

static MK_HOT void on_init(struct mk_request *req, void *ctx)
{
    const struct mk__thread *t = ctx;
    req->worker = t->worker;
    mk__worker_get(t->worker);
}

static MK_HOT void on_free(void *worker)
{
    mk__worker_put(worker);
}

static void hold_worker(void *worker)
{
    mk__worker_get(worker);
}

static MK_HOT void on_head(struct mk_request *req, void *ctx)
{
    const struct mk_generation *g = get_generation(req);
    const void *listener = g->bound ? req->ops->io(req)->listener : NULL;
    const struct mk_host *host = mk__generation_find_host(g, listener, mk_request_host(req));
    assert(host);
    (void)ctx;
    req->app_data = host;
    req->limits = host->path_limits ? &host->path_limits->preliminary : &host->limits;
}

static int accepts_encoded_slash(const struct mk_request *req, struct mk_str path, void *ctx)
{
    const struct mk_generation *g = get_generation(req);
    const struct mk_host *host = get_host(req);
    int how = MK_ENCODED_SLASH_REFUSE;
    (void)ctx;
    for (uint32_t left = get_hooks(g, host, MK__HOOK_CONTENT); left; left &= left - 1) {
        int one = accept_slash(g->plugins[__builtin_ctz(left)], host, path);
        how = one > how ? one : how; /* one that decodes it decides for all */
    }
    return how;
}

static MK_HOT void on_request(struct mk_request *req, void *ctx)
{
    const struct mk_generation *g = get_generation(req);
    const struct mk_host *host = get_host(req);
    (void)ctx;
    req->hook = host->first_hook * MK__PLUGINS_MAX;
    req->hook_end = MK__HOOK_RESPONSE * MK__PLUGINS_MAX;
    run_hooks(req, g, host);
}

/* Calls the hooks that decide about access, from req->hook on. Returns whether one of them takes the request. */
static bool is_access_taken(struct mk_request *req, const struct mk_generation *g)
{
    for (; req->hook < MK__HOOK_CONTENT * MK__PLUGINS_MAX; req->hook++) {
        uint32_t asked = g->access & get_hooks(g, get_host(req), req->hook / MK__PLUGINS_MAX);
        if (asked & 1u << req->hook % MK__PLUGINS_MAX && is_taken(req, g))
            return true;
    }
    req->rewritten->decides_access = false;
    return false;
}

/* Access to another path was decided: the request has its own path again, and the plugin that asked for it. */
static void end_decision(struct mk_request *req)
{
    struct mk__rewritten *r = req->rewritten;
    struct mk_str path = r->decided;
    r->decided = req->path;
    req->path = path;
    req->hook = r->resumed;
    r->resumed = 0;
}

/* After an internal redirect, or a wait for a decision: what is left of those that decide, then on_content. */
static MK_NOINLINE void decide_access(struct mk_request *req)
{
    const struct mk_generation *g = get_generation(req);
    if (is_access_taken(req, g))
        return;
    if (req->rewritten->resumed)
        end_decision(req);
    else
        req->hook_end = MK__HOOK_RESPONSE * MK__PLUGINS_MAX;
    run_hooks(req, g, get_host(req));
}

void mk_request_decline(struct mk_request *req)
{
    if (req->response_state != MK__RESPONSE_OPEN)
        return;
    req->hook++;
    if (req->rewritten && req->rewritten->decides_access)
        decide_access(req);
    else
        run_hooks(req, get_generation(req), get_host(req));
}

static void begin_decision(struct mk_request *req)
{
    assert(req->rewritten);
    req->rewritten->decides_access = true;
    req->access = 0;
    req->defers_denial = false;
    req->hook = MK__HOOK_HEAD * MK__PLUGINS_MAX;
}

void mk__request_hooks_restart(struct mk_request *req)
{
    begin_decision(req);
    if (add_limits(req, get_host(req)))
        decide_access(req);
}

int mk__request_hooks_decide(struct mk_request *req)
{
    assert(req->hook >= MK__HOOK_CONTENT * MK__PLUGINS_MAX);
    req->rewritten->resumed = req->hook;
    begin_decision(req);
    if (!add_limits(req, get_host(req)) || is_access_taken(req, get_generation(req)))
        return 0;
    end_decision(req);
    return MK_DECLINED;
}

bool mk_host_decides_access(const struct mk_host *host)
{
    const struct mk_generation *g = host->generation;
    return host->path_limits || g->access & (get_hooks(g, host, MK__HOOK_HEAD) | get_hooks(g, host, MK__HOOK_REQUEST));
}

static MK_HOT void on_response(struct mk_request *req, void *ctx)
{
    const struct mk_generation *g = get_generation(req);
    (void)ctx;
    for (uint32_t left = get_hooks(g, get_host(req), MK__HOOK_RESPONSE); left; left &= left - 1)
        g->plugins[__builtin_ctz(left)]->on_response(req);
}

static MK_HOT void on_done(struct mk_request *req, void *ctx)
{
    const struct mk_generation *g = get_generation(req);
    const struct mk_host *host = get_host(req);
    (void)ctx;
    mk__counts_add_request(req, host ? host : g->default_host);
    for (uint32_t left = get_hooks(g, host, MK__HOOK_DONE); left; left &= left - 1)
        g->plugins[__builtin_ctz(left)]->on_done(req);
}

static struct mk_str find_mime(const struct mk_request *req, struct mk_str path, void *ctx)
{
    (void)ctx;
    return mk__mime_find(&get_generation(req)->mime, path);
}

static MK_HOT uint64_t get_mime_id(const struct mk_request *req, void *ctx)
{
    (void)ctx;
    return get_generation(req)->mime.id;
}

static void on_handler_timeout(struct mk_request *req, void *ctx)
{
    (void)ctx;
    log_plugin_error(req, mk__extra_has_wait(req) ? "no answer within the time that it has set"
                                                  : "no answer within HandlerTimeout");
}

static void on_conn_freed(void *ctx)
{
    mk__thread_conn_freed(ctx);
}

static bool is_h2_enabled(const struct mk__http_settings *settings)
{
    return settings->h2;
}

const struct mk__http_app mk__request_hooks_app = {
    .protos = {[MK__PROTO_H1] = {.proto = &mk__h1_proto},
               [MK__PROTO_H2] = {.alpn = MK_STR_INIT("h2"),
                                 .find = mk__h2_find,
                                 .is_enabled = is_h2_enabled,
                                 .recognize = mk__preface_check}},
    .on_init = on_init,
    .on_head = on_head,
    .accepts_encoded_slash = accepts_encoded_slash,
    .on_request = on_request,
    .on_response = on_response,
    .on_done = on_done,
    .on_free = on_free,
    .hold_worker = hold_worker,
    .mime = find_mime,
    .mime_id = get_mime_id,
    .on_handler_timeout = on_handler_timeout,
    .on_conn_freed = on_conn_freed,
    .on_accept = mk__conn_hooks_on_accept,
    .on_client = mk__conn_hooks_on_client,
    .on_close = mk__conn_hooks_on_close,
    .trusted_proxies = mk__conn_hooks_trust,
};

/* ── for plugins ── */

void *mk_host_state(const struct mk_host *host, const struct mk_plugin *plugin)
{
    int i = mk__generation_find_plugin(host->generation, plugin);
    return i < 0 ? NULL : host->states[i];
}

void *mk_request_host_state(const struct mk_request *req, const struct mk_plugin *plugin)
{
    const struct mk_host *host = get_host(req);
    return host ? mk_host_state(host, plugin) : NULL; /* no host was chosen for a malformed head */
}

const struct mk_host *mk_request_host_conf(const struct mk_request *req)
{
    const struct mk_host *host = get_host(req);
    return host ? host : get_generation(req)->default_host;
}

int mk_request_set_state(struct mk_request *req, const struct mk_plugin *plugin, void *state)
{
    const struct mk_generation *g = get_generation(req);
    int i = mk__generation_find_plugin(g, plugin);
    if (i < 0)
        return -ENOENT;
    if (!req->plugin_states)
        req->plugin_states = mk_arena_zalloc(&req->arena, g->n_plugins * sizeof(*req->plugin_states));
    if (!req->plugin_states)
        return -ENOMEM;
    req->plugin_states[i] = state;
    return 0;
}

void *mk_request_state(const struct mk_request *req, const struct mk_plugin *plugin)
{
    int i = req->plugin_states ? mk__generation_find_plugin(get_generation(req), plugin) : -1;
    return i < 0 ? NULL : req->plugin_states[i];
}

MK_HOT struct mk_worker *mk_request_worker(const struct mk_request *req)
{
    return req->worker;
}

bool mk_request_aborted(const struct mk_request *req)
{
    return req->output_state != MK__OUTPUT_COMPLETE;
}

uint64_t mk_request_bytes_sent(const struct mk_request *req)
{
    return req->sent_bytes;
}

struct mk_str mk_request_listener(const struct mk_request *req)
{
    return mk__generation_listener_text(get_generation(req), req->ops->io(req)->listener);
}

bool mk_request_draining(const struct mk_request *req)
{
    return req->http->shutdown == MK__SHUTDOWN_ANNOUNCED || req->http->shutdown == MK__SHUTDOWN_DRAINING;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Asks the plugins what would become of a request (<monkey/inspect.h>), in the order in which requests pass them:
 *
 *     host ─► head (rewrites begin again) ─► limits ─► request ─► handler ─► content ─► response
 */
#include "server/inspect_core.h"

#include "http/message/uri.h"
#include "server/listen/listeners.h"
#include "server/generation/path_limits.h"

#include <monkey/hooks.h>
#include <monkey/inspect.h>

#include <assert.h>
#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

enum { SENTENCE_BYTES = 2048, PLACE_BYTES = 4096, PATH_BYTES_MAX = MK_REWRITE_BYTES_MAX };

struct explanation {
    struct mk_explain e;
    mk_explain_fn fn;
    void *ctx;
    const struct mk_generation *g;
    const struct mk_host *host;
    const struct mk__listen_conf *listener; /* NULL: not known */
    const char *phase;
    struct mk_arena arena;
    unsigned rewrites;
};

/* ── sentences ── */

static const char *const effect_names[] = {"note", "maybe", "answers"};
static const char *const phase_names[] = {"head", "request", "content", "response"};

static void report_step(struct explanation *x, const char *phase, struct mk_str place, enum mk_explain_effect effect,
                        const char *format, ...) MK_PRINTF(5, 6);
static void report_args(struct explanation *x, const char *phase, struct mk_str place, enum mk_explain_effect effect,
                        const char *format, va_list args)
{
    char storage[SENTENCE_BYTES];
    int n = vsnprintf(storage, sizeof(storage), format, args);
    size_t len = n < 0 ? 0 : (size_t)n < sizeof(storage) ? (size_t)n : sizeof(storage) - 1;
    struct mk_explain_step step = {phase, x->e.plugin, effect_names[effect], mk_str(storage, len), place};
    x->fn(&step, x->ctx);
}

static void report_step(struct explanation *x, const char *phase, struct mk_str place, enum mk_explain_effect effect,
                        const char *format, ...)
{
    va_list args;
    va_start(args, format);
    report_args(x, phase, place, effect, format, args);
    va_end(args);
}

static void add_sentence(struct mk_explain *e, const struct mk_host *host, const void *section_struct,
                         enum mk_explain_effect effect, const char *format, ...)
{
    struct explanation *x = MK_CONTAINER_OF(e, struct explanation, e);
    va_list args;
    MK_BUF_ON_STACK(place, PLACE_BYTES);
    if (section_struct)
        mk_host_conf_origin(host, section_struct, &place);
    va_start(args, format);
    report_args(x, x->phase, mk_buf_str(&place), effect, format, args);
    va_end(args);
    e->answered |= effect == MK_EXPLAIN_ANSWERS;
}

/* ── the request ── */

/* Decodes and normalizes a path. Returns 0, -EINVAL or -ENOMEM. */
static int decode_path(struct explanation *x, struct mk_str raw, struct mk_str *ret)
{
    size_t size = raw.len + 2;
    char *out = mk_arena_alloc(&x->arena, size);
    if (!out)
        return -ENOMEM;
    ssize_t n = mk__uri_decode_path(raw, out, size);
    if (n < 0)
        return -EINVAL;
    *ret = mk_str(out, (size_t)n);
    return 0;
}

static int rewrite_path(struct mk_explain *e, struct mk_str path, struct mk_str query)
{
    struct explanation *x = MK_CONTAINER_OF(e, struct explanation, e);
    if (++x->rewrites > MK_REWRITES_MAX)
        return -ELOOP;
    if (path.len + query.len > PATH_BYTES_MAX)
        return -EINVAL;
    struct mk_str own_query = query.p ? mk_arena_dup(&x->arena, query) : MK_STR_NONE;
    if (query.p && !own_query.p)
        return -ENOMEM;
    int err = decode_path(x, path, &e->path);
    if (err == 0)
        e->query = own_query;
    return err;
}

/* Returns the first listener of a port; NULL: there is none. */
static const struct mk__listen_conf *find_listener(const struct mk_generation *g, uint16_t port)
{
    for (uint32_t i = 0; i < g->settings->listen.n; i++) {
        const struct mk__listener *open = g->settings->listen.items[i].listener;
        const struct mk__addr *addr = open ? &open->addr : &g->settings->listen.items[i].addr;
        in_port_t own = addr->sa.sa_family == AF_INET6 ? addr->in6.sin6_port : addr->in.sin_port;
        if (addr->sa.sa_family != AF_UNIX && ntohs(own) == port)
            return &g->settings->listen.items[i];
    }
    return NULL;
}

static int read_request(struct explanation *x, const struct mk_explain_request *request)
{
    struct mk__uri_parts parts;
    struct mk__uri_host_port at;
    int err = mk__uri_split_target(request->method, request->url, &parts);
    if (err < 0 || (parts.form != MK__URI_ORIGIN && parts.form != MK__URI_ABSOLUTE))
        return -EINVAL;
    struct mk_str authority = parts.authority.len ? parts.authority : mk_explain_header(&x->e, MK_STR("Host"));
    if (authority.len && mk__uri_split_authority(authority, &at) < 0)
        return -EINVAL;
    x->e.name = authority.len ? at.name : MK_STR("");
    bool is_https = mk_str_ieq(parts.scheme, MK_STR("https"));
    if (parts.authority.len)
        x->listener = find_listener(x->g, at.has_port ? at.port : is_https ? 443 : 80);
    if (parts.authority.len)
        x->e.scheme = is_https ? MK_STR("https") : MK_STR("http");
    if (x->listener)
        x->e.listener = x->listener->text;
    x->e.query = parts.has_query ? parts.query : MK_STR_NONE;
    err = decode_path(x, parts.path, &x->e.path);
    x->e.original_path = x->e.path;
    return err;
}

/* ── what the server itself decides ── */

static void report_listener(struct explanation *x)
{
    if (x->listener)
        report_step(x, "listener", MK_STR_NONE, MK_EXPLAIN_NOTE, "Listen %.*s, by the transport %s%s",
                    MK_STR_ARG(x->listener->text), x->listener->mode.transport->name,
                    x->listener->mode.proxy ? ", behind a PROXY header" : "");
    else
        report_step(x, "listener", MK_STR_NONE, MK_EXPLAIN_NOTE,
                    "no Listen line is known for the request: hosts that are bound to listeners are left out");
}

static void report_host(struct explanation *x)
{
    struct mk_str name = mk_host_name(x->host, 0), asked = x->e.name;
    MK_BUF_ON_STACK(place, PLACE_BYTES);
    mk_host_file(x->host, &place);
    if (mk_host_has_name(x->host, asked))
        report_step(x, "host", mk_buf_str(&place), MK_EXPLAIN_NOTE, "the host %.*s serves the name %.*s",
                    MK_STR_ARG(name), MK_STR_ARG(asked));
    else
        report_step(x, "host", mk_buf_str(&place), MK_EXPLAIN_NOTE,
                    "no host has the name \"%.*s\": the default host%s%.*s serves it", MK_STR_ARG(asked),
                    name.len ? " " : "", MK_STR_ARG(name));
}

/* Returns the n-th section of a kind; NULL: there are fewer. */
static const void *find_section(const struct mk_host *host, const struct mk_conf_section *section, uint32_t n)
{
    const void *data = mk_inspect_core.conf_get(host->set, section);
    while (data && n--)
        data = mk_inspect_core.conf_next(host->set, section, data);
    return data;
}

/* As mk__path_limits_find(), and says which section it is. `is_other`: the path is not that of the request. */
static void report_limits(struct explanation *x, bool is_other)
{
    const struct mk__path_limits *all = x->host->path_limits;
    const struct mk__http_limits *limits = &x->host->limits;
    int match = 0;
    uint32_t i = 0;
    while (all && i < all->n && (match = mk_pattern_match(all->rows[i].match, x->e.path)) == 0)
        i++;
    if (match < 0) {
        add_sentence(&x->e, x->host, find_section(x->host, mk_inspect_core.limits, i), MK_EXPLAIN_ANSWERS,
                     "500, because the pattern takes too much time for the path");
        return;
    }
    const void *section = match > 0 ? find_section(x->host, mk_inspect_core.limits, i) : NULL;
    if (is_other && !section)
        return;
    limits = match > 0 ? &all->rows[i].limits : limits;
    add_sentence(&x->e, x->host, section, MK_EXPLAIN_NOTE,
                 "%s: MaxBodySize %llu bytes, HandlerTimeout %u ms, BodyTimeout %u ms, SendTimeout %u ms%s",
                 section ? "[LIMITS] holds" : "the limits of the host hold", (unsigned long long)limits->body_bytes_max,
                 limits->timeout_ms[MK__TIMEOUT_HANDLER], limits->timeout_ms[MK__TIMEOUT_BODY],
                 limits->timeout_ms[MK__TIMEOUT_SEND], is_other ? "; the lower MaxBodySize of both paths holds" : "");
}

/* Appends the place of the line of [HANDLERS] that is the `nth` of all sections. */
static void print_handler_line(const struct mk_host *host, uint32_t nth, struct mk_buf *out)
{
    const struct mk_conf_section *section = mk_inspect_core.handlers;
    const struct mk__handlers *one = mk_inspect_core.conf_get(host->set, section);
    for (; one && nth >= one->n; one = mk_inspect_core.conf_next(host->set, section, one))
        nth -= one->n;
    if (!one)
        return;
    struct mk__conf_origin origin =
        mk_inspect_core.conf_origin(host->set, one, offsetof(struct mk__handlers, items), nth);
    if (!origin.source) /* a section of monkey.conf */
        origin = mk_inspect_core.conf_origin(host->generation->set, one, offsetof(struct mk__handlers, items), nth);
    mk_inspect_core.print_origin(origin, out);
}

/* Finds the plugin that [HANDLERS] gives the path to; NULL: all are asked. */
static const struct mk__handler *report_handler(struct explanation *x)
{
    const struct mk__handler *handler;
    int err = mk_inspect_core.find_handler(x->host, x->e.path, &handler);
    MK_BUF_ON_STACK(place, PLACE_BYTES);
    if (handler)
        print_handler_line(x->host, (uint32_t)(handler - x->host->handlers.items), &place);
    if (err < 0) {
        x->e.answered = true;
        report_step(x, "handler", mk_buf_str(&place), MK_EXPLAIN_ANSWERS,
                    "500, because a pattern of [HANDLERS] takes too much time for the path");
    } else if (handler) {
        report_step(x, "handler", mk_buf_str(&place), MK_EXPLAIN_NOTE, "only the plugin %.*s is asked for the content",
                    MK_STR_ARG(handler->plugin));
    } else {
        report_step(x, "handler", MK_STR_NONE, MK_EXPLAIN_NOTE,
                    "all plugins are asked for the content, in their order");
    }
    return handler;
}

/* ── the phases ── */

static void ask_plugin(struct explanation *x, const struct mk_plugin *plugin, enum mk_explain_phase phase)
{
    if (!MK_PLUGIN_HOOK(plugin, inspection, explain))
        return;
    x->e.phase = phase;
    x->phase = phase_names[phase];
    x->e.plugin = mk_str_c(plugin->name);
    plugin->inspection->explain(x->host, &x->e);
    x->e.plugin = MK_STR_NONE;
}

/* Asks all plugins, until one of them answers; in the last phase all. */
static void run_phase(struct explanation *x, enum mk_explain_phase phase)
{
    for (unsigned i = 0; i < x->g->n_plugins; i++) {
        if (x->e.answered && phase != MK_EXPLAIN_RESPONSE)
            return;
        ask_plugin(x, x->g->plugins[i], phase);
    }
}

static void explain_content(struct explanation *x)
{
    const struct mk__handler *handler = x->e.answered ? NULL : report_handler(x);
    if (handler)
        ask_plugin(x, x->g->plugins[handler->index], MK_EXPLAIN_CONTENT);
    else
        run_phase(x, MK_EXPLAIN_CONTENT);
    if (!x->e.answered)
        report_step(x, "content", MK_STR_NONE, MK_EXPLAIN_NOTE, "%s if no plugin has answered",
                    mk_str_eq(x->e.method, MK_STR("GET")) || mk_str_eq(x->e.method, MK_STR("HEAD")) ? "404"
                                                                                                    : "404 or 501");
}

static void explain_phases(struct explanation *x)
{
    report_listener(x);
    report_host(x);
    run_phase(x, MK_EXPLAIN_HEAD);
    x->phase = "limits";
    if (!x->e.answered)
        report_limits(x, false);
    run_phase(x, MK_EXPLAIN_REQUEST);
    explain_content(x);
    run_phase(x, MK_EXPLAIN_RESPONSE);
}

/* Tells the path of the file that may be sent, or is run. */
static void set_result(const struct explanation *x, struct mk_explain_result *ret)
{
    bool reads = mk_str_eq(x->e.method, MK_STR("GET")) || mk_str_eq(x->e.method, MK_STR("HEAD"));
    ret->host = x->host;
    mk_buf_init(&ret->path, PATH_BYTES_MAX + 2);
    if ((!x->e.answered && reads) || x->e.runs_file)
        mk_buf_adds(&ret->path, x->e.path);
}

/* Returns an explanation of no request yet. It must not move: its functions find it by `e`. */
static struct explanation make_explanation(const struct mk_worker *worker, const struct mk_explain_request *request,
                                           mk_explain_fn fn, void *ctx)
{
    return (struct explanation){
        .e = {.method = request->method,
              .headers = request->headers,
              .n_headers = request->n_headers,
              .client = request->client,
              .worker = worker,
              .add = add_sentence,
              .rewrite = rewrite_path},
        .fn = fn,
        .ctx = ctx,
        .g = worker->generation,
    };
}

static int begin_explanation(struct explanation *x, const struct mk_explain_request *request)
{
    mk_arena_init(&x->arena, NULL, PATH_BYTES_MAX * 16, NULL, 0);
    int err = read_request(x, request);
    if (err == 0)
        x->host = mk_inspect_core.find_host(x->g, x->listener ? x->listener->listener : NULL, x->e.name);
    return err;
}

int mk_explain(const struct mk_worker *worker, const struct mk_explain_request *request, mk_explain_fn fn, void *ctx,
               struct mk_explain_result *ret)
{
    struct explanation x = make_explanation(worker, request, fn, ctx);
    int err = begin_explanation(&x, request);
    if (err == 0) {
        explain_phases(&x);
        set_result(&x, ret);
    }
    mk_arena_release(&x.arena);
    return err;
}

bool mk_explain_access(const struct mk_worker *worker, const struct mk_explain_request *request, struct mk_str path,
                       mk_explain_fn fn, void *ctx)
{
    struct explanation x = make_explanation(worker, request, fn, ctx);
    int err = begin_explanation(&x, request);
    x.e.path = path;
    x.phase = "limits";
    if (err == 0)
        report_limits(&x, true);
    for (enum mk_explain_phase phase = MK_EXPLAIN_HEAD; err == 0 && phase <= MK_EXPLAIN_REQUEST; phase++)
        for (unsigned i = 0; i < x.g->n_plugins && !x.e.answered; i++)
            if (x.g->plugins[i]->flags & MK_PLUGIN_DECIDES_ACCESS)
                ask_plugin(&x, x.g->plugins[i], phase);
    mk_arena_release(&x.arena);
    return x.e.answered;
}

const struct mk_plugin *mk_explain_path(const struct mk_host *host, struct mk_str path, struct mk_buf *out,
                                        struct mk_buf *decided)
{
    const struct mk_generation *g = host->generation;
    const struct mk__handler *handler;
    if (mk_inspect_core.find_handler(host, path, &handler) < 0)
        return NULL;
    for (unsigned i = 0; i < g->n_plugins; i++)
        if (MK_PLUGIN_HOOK(g->plugins[i], inspection, explain_path) && host->states[i] &&
            (!handler || handler->index == i) && g->plugins[i]->inspection->explain_path(host, path, out, decided))
            return g->plugins[i];
    return NULL;
}

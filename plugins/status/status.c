// SPDX-License-Identifier: Apache-2.0
/*
 * status: shows what the server is doing, as metrics for Prometheus, as a document in JSON and on a live page. This
 * file has the hooks: it counts what the core does not count, and chooses what a request gets.
 *
 *     /metrics ──────────────┐
 *     /status (JSON) ────────┤ respond.c ─► snapshot.c: asks the workers, a job renders (render.c)
 *     /status/events ────────┘           ─►   metrics.c, document.c: pure
 *     /status/ and its files   <monkey/kit/embedded.h>
 */
#include "report.h"
#include "state.h"

#include <monkey/base/accept.h>
#include <monkey/hooks.h>
#include <monkey/inspect.h>
#include <monkey/kit/embedded.h>
#include <monkey/kit/local_client.h>

#include <assert.h>
#include <errno.h>

static const struct mk_conf_key keys[] = {
    MK_CONF_KEY_BOOL(struct settings, enabled, "Enabled", "Off", "Serve the status."),
    MK_CONF_KEY_CUSTOM(struct settings, status_path, "StatusPath", "/status",
                       "The status as JSON; with a slash behind it, the live page.", .unit = "path",
                       .parse = mk_embedded_parse_path),
    MK_CONF_KEY_CUSTOM(struct settings, metrics_path, "MetricsPath", "/metrics", "The metrics for Prometheus.",
                       .unit = "path", .parse = mk_embedded_parse_path),
    MK_CONF_KEY_LIST(
        struct settings, listeners, "Listener", NULL,
        "Serve the status on these listeners only, by the address of their `Listen` lines, to every "
        "client that can connect there; they serve nothing else. Without this key: on every listener, to "
        "clients on this machine (loopback addresses and Unix sockets) that ask for an address, `localhost` or a "
        "`ServerName` of the host. Clients behind a proxy on this "
        "machine count as such unless `TrustedProxies` names the proxy.",
        .flags = MK_CONF_REPEAT),
    MK_CONF_KEY_BOOL(struct settings, paths, "Paths", "Off",
                     "Count the paths of requests, without queries, for the lists of the busiest and the slowest ones. "
                     "This takes 100 KB for each worker."),
    MK_CONF_KEY_INT(struct settings, streams_max, "MaxPages", "16",
                    "How many live pages may be open; further ones get 503 for their figures.", .min = 1, .max = 1000),
    {0},
};

static void check_settings(const struct mk_conf_check *check, void *section)
{
    const struct settings *s = section;
    if (mk_str_eq(s->status_path, s->metrics_path) && s->status_path.len)
        mk_conf_error(check, offsetof(struct settings, metrics_path), "\"StatusPath\" has the same path");
    if (s->listeners.n && !s->enabled)
        mk_conf_error(check, offsetof(struct settings, listeners),
                      "\"Enabled On\" is missing: the listener would have nothing to serve");
}

const struct mk_conf_section section_status[] = {
    {.name = "STATUS",
     .scope = MK_CONF_SCOPE_SERVER,
     .size = sizeof(struct settings),
     .keys = keys,
     .check = check_settings,
     .doc = MK_CONF_DOC("What the server is doing: metrics, a document in JSON and a live page. "
                        "See docs/guide/status.md.")},
    {0},
};

/* Checks that the listeners exist. Returns 0 or -EINVAL (reported). */
static int check_clients(struct mk_host *host, const struct settings *s)
{
    int err = 0;
    for (uint32_t i = 0; i < s->listeners.n; i++) {
        if (mk_host_has_listener(host, s->listeners.items[i]))
            continue;
        mk_host_error(host, s, offsetof(struct settings, listeners), i, "there is no line \"Listen %.*s\"",
                      MK_STR_ARG(s->listeners.items[i]));
        err = -EINVAL;
    }
    if (s->listeners.n && err == 0 && !mk_host_reserve_listeners(host, &s->listeners))
        mk_host_warn(
            host, s, offsetof(struct settings, listeners), 0,
            "the server listens nowhere else, and serves nothing else here: add a line \"Listen\" for the sites");
    return err;
}

/* ── access ── */

/* Returns whether the status is on a listener, by the address of its Listen line. */
static bool has_listener(const struct settings *s, struct mk_str text)
{
    for (uint32_t i = 0; i < s->listeners.n; i++)
        if (mk_str_eq(s->listeners.items[i], text))
            return true;
    return false;
}

/*
 * Returns true if the connection of the request may see the status: it uses one of the listeners or, without any, both
 * its other end and the client are on this machine.
 */
static bool allows_client(const struct settings *s, struct mk_request *req)
{
    if (s->listeners.n)
        return has_listener(s, mk_request_listener(req));
    return mk_local_client_is_here(req);
}

extern const struct mk_plugin mk_plugin_status;
extern const struct mk_embedded_file status_files[]; /* of the live page */

/* ── states ── */

static int start_process(void **ret_state)
{
    struct state *s = mk_account_zalloc(NULL, sizeof(*s));
    if (!s)
        return -ENOMEM;
    mk_threads_init(&s->threads, &thread_type);
    pthread_mutex_init(&s->lock, NULL);
    s->start_time = process_start_time();
    *ret_state = s;
    return 0;
}

static void stop_process(void *state)
{
    struct state *s = state;
    assert(!s->replies && !s->streams);
    mk_threads_release(&s->threads);
    pthread_mutex_destroy(&s->lock);
    mk_account_free(NULL, s, sizeof(*s));
}

static int start_generation(struct mk_generation *g, void **ret_state)
{
    struct state_generation *s = mk_account_zalloc(NULL, sizeof(*s));
    if (!s)
        return -ENOMEM;
    s->settings = mk_generation_conf(g, section_status);
    *ret_state = s;
    return 0;
}

static void stop_generation(struct mk_generation *g, void *state)
{
    (void)g;
    mk_account_free(NULL, state, sizeof(struct state_generation));
}

static int start_host(struct mk_host *host, void **ret_state)
{
    const struct settings *s = mk_host_server_conf(host, section_status);
    int err = check_clients(host, s);
    if (s->enabled)
        *ret_state = (void *)(uintptr_t)s;
    return err;
}

static int start_worker(struct mk_worker *worker, void **ret_state)
{
    struct mk_generation *g = mk_worker_generation(worker);
    struct state_worker *w = mk_account_zalloc(NULL, sizeof(*w));
    if (!w)
        return -ENOMEM;
    w->state = mk_generation_plugin_state(g, &mk_plugin_status);
    w->generation = mk_generation_state(g, &mk_plugin_status);
    w->number = mk_generation_number(g);
    const struct settings *s = w->generation->settings;
    int err = mk_threads_add_worker(&w->state->threads, &w->own, worker);
    if (err == 0 && s->enabled && s->paths && (err = thread_count_paths(thread_of(w->own.thread))) < 0)
        mk_threads_remove_worker(&w->own);
    if (err < 0) {
        mk_account_free(NULL, w, sizeof(*w));
        return err;
    }
    stream_init(w);
    *ret_state = w;
    return 0;
}

static void stop_worker(struct mk_worker *worker, void *state)
{
    struct state_worker *w = state;
    (void)worker;
    assert(!w->snapshot);
    mk_threads_remove_worker(&w->own);
    mk_account_free(NULL, w, sizeof(*w));
}

static void retire_worker(struct mk_worker *worker, void *state)
{
    struct state_worker *w = state;
    (void)worker;
    mk_event_streams_retire(&w->streams);
}

/* ── counting ── */

/* The time is that until the response began, so that slow clients and streams without an end do not count as slow. */
static void add_path(struct sketch *sketch, struct mk_request *req)
{
    struct mk_loop *loop = mk_request_loop(req);
    uint64_t began = mk_request_began_us(req), end = mk_response_began_us(req);
    struct mk_str path = mk_request_original_path(req);
    if (!end)
        end = mk_loop_now_us(loop); /* the client has left before, or the handler has timed out */
    if (path.len)
        sketch_add(sketch, (uint64_t)mk_loop_wall_seconds(loop) / 60, path, began && began < end ? end - began : 0);
}

static void count_request(struct mk_request *req)
{
    const struct state_worker *w = mk_worker_state(mk_request_worker(req), &mk_plugin_status);
    struct thread *t = thread_of(w->own.thread);
    t->requests++;
    if (w->generation->settings->paths && t->sketch)
        add_path(t->sketch, req);
}

/* ── requests ── */

static struct mk_str get_accept(struct mk_request *req)
{
    return mk_request_header_by_name(req, MK_STR("Accept"));
}

static void send_metrics(struct mk_request *req, struct state_worker *w, const struct mk_embedded_file *file)
{
    static const struct mk_accept_offer offers[] = {
        [METRICS_TEXT] = {.type = MK_STR("text/plain"), .version = MK_STR("0.0.4")},
        [METRICS_OPENMETRICS] = {.type = MK_STR("application/openmetrics-text"),
                                 .version = MK_STR("1.0.0"),
                                 .only_by_name = true},
    };
    unsigned format = mk_accept_choose(get_accept(req), offers, 2, METRICS_TEXT);
    (void)file;
    respond_start(req, w, format == METRICS_OPENMETRICS ? RESPOND_OPENMETRICS : RESPOND_TEXT);
}

/* The document; a browser is sent to the page. */
static void send_status(struct mk_request *req, struct state_worker *w, const struct mk_embedded_file *file)
{
    static const struct mk_accept_offer offers[] = {
        {.type = MK_STR("application/json")},
        {.type = MK_STR("text/html"), .only_by_name = true},
    };
    (void)file;
    if (mk_accept_choose(get_accept(req), offers, 2, 0) == 0) {
        respond_start(req, w, RESPOND_JSON);
        return;
    }
    mk_response_redirect_to_slash(req, 303);
}

static void send_events(struct mk_request *req, struct state_worker *w, const struct mk_embedded_file *file)
{
    (void)file;
    stream_start(req, w);
}

static void send_file(struct mk_request *req, struct state_worker *w, const struct mk_embedded_file *file)
{
    (void)w;
    mk_embedded_send(req, file);
}

/* What a path of the plugin gets. */
struct target {
    void (*send)(struct mk_request *req, struct state_worker *w,
                 const struct mk_embedded_file *file); /* NULL: nothing */
    const struct mk_embedded_file *file;
};

/* `name`: below the path of the status, without the slash before it. */
static struct target find_below(struct mk_str name)
{
    if (mk_str_eq(name, MK_STR("events")))
        return (struct target){.send = send_events};
    const struct mk_embedded_file *file = mk_embedded_find(status_files, name);
    return file ? (struct target){send_file, file} : (struct target){0};
}

static struct target find_target(struct mk_str path, const struct settings *s)
{
    size_t n = s->status_path.len;
    if (mk_str_eq(path, s->metrics_path))
        return (struct target){.send = send_metrics};
    if (mk_str_eq(path, s->status_path))
        return (struct target){.send = send_status};
    if (path.len > n && mk_str_starts(path, s->status_path) && path.p[n] == '/')
        return find_below(mk_str(path.p + n + 1, path.len - n - 1));
    return (struct target){0};
}

/* A path that was rewritten may lead here, and one of the status stays here if it was rewritten. */
static struct target find_target_of(const struct mk_request *req, const struct settings *s)
{
    struct mk_str original = mk_request_original_path(req), path = mk_request_path(req);
    struct target target = find_target(original, s);
    return target.send || original.p == path.p ? target : find_target(path, s);
}

static bool claims_request(struct mk_request *req)
{
    const struct settings *s = mk_request_host_state(req, &mk_plugin_status);
    return s && (s->listeners.n || find_target(mk_request_original_path(req), s).send) && allows_client(s, req);
}

static int answer_request(struct mk_request *req)
{
    const struct settings *s = mk_request_host_state(req, &mk_plugin_status);
    struct target target = s ? find_target_of(req, s) : (struct target){0};
    if (!s || (!target.send && !s->listeners.n) || !allows_client(s, req))
        return MK_DECLINED;
    enum mk_method method = mk_request_method(req);
    if (!target.send)
        mk_response_error(req, 404); /* the listener serves nothing else */
    else if (method != MK_GET && method != MK_HEAD)
        mk_response_method_not_allowed(req, MK_STR("GET, HEAD, OPTIONS"));
    else
        target.send(req, mk_worker_state(mk_request_worker(req), &mk_plugin_status), target.file);
    return 0;
}

static void explain_status(const struct mk_host *host, struct mk_explain *e)
{
    const struct settings *s = mk_host_state(host, &mk_plugin_status);
    if (!s)
        return;
    bool is_path = find_target(e->original_path, s).send;
    bool has_own = s->listeners.n, is_unknown = has_own && !e->listener.len; /* its own listeners; which one it is */
    bool is_own = has_own && !is_unknown && has_listener(s, e->listener);
    if (has_own && !is_unknown && !is_own)
        return;
    if (!is_path && !is_own)
        return;
    const char *where = !has_own ? " clients on this machine" : is_own ? "" : " at the listeners of its section";
    if (e->phase == MK_EXPLAIN_HEAD)
        e->claimed |= !is_unknown;
    else if (e->phase == MK_EXPLAIN_CONTENT)
        mk_explain_add(e, host, mk_host_server_conf(host, section_status),
                       is_own ? MK_EXPLAIN_ANSWERS : MK_EXPLAIN_MAYBE, "%s%s",
                       is_path ? "[STATUS] answers" : "404: the listener of [STATUS] serves nothing else", where);
}

static const struct mk_path_hooks path_hooks = {.claims = claims_request};

static const struct mk_inspect_hooks inspect_hooks = {
    .explain = explain_status,
    .commands = status_commands,
};

MK_PLUGIN(status) = {
    MK_PLUGIN_HEAD("status", "2.0.0", "shows what the server is doing: metrics, JSON, a live page"),
    .flags = MK_PLUGIN_TIMES | MK_PLUGIN_CHECKS_ALL,
    .sections = section_status,
    .start = start_process,
    .stop = stop_process,
    .generation_start = start_generation,
    .generation_stop = stop_generation,
    .host_start = start_host,
    .worker_start = start_worker,
    .worker_stop = stop_worker,
    .worker_retire = retire_worker,
    .on_content = answer_request,
    .on_done = count_request,
    .paths = &path_hooks,
    .inspection = &inspect_hooks,
};

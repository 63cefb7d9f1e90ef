// SPDX-License-Identifier: Apache-2.0
/*
 * health: tells load balancers and supervisors whether the server is alive, and whether it is ready for requests. It
 * responds on every host, or on its own listeners, before other plugins that come later in the order, and before
 * redirects of any.
 */
#include <monkey/counters.h>
#include <monkey/hooks.h>
#include <monkey/inspect.h>

#include <assert.h>
#include <errno.h>

extern const struct mk_plugin mk_plugin_health;

/* ── directives ── */

struct health_conf {
    struct mk_str live, ready;
    struct mk_conf_list listeners;
};

static int parse_path(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    struct mk_str *path = field, text = value->text;
    struct mk_pattern only;
    *path = MK_STR(""); /* not NULL: the key is set, even if its value is wrong */
    if (value->n != 1 || !mk_str_starts(text, MK_STR("/")) || memchr(text.p, '?', text.len))
        return mk_conf_fail(error, "one path is needed, which starts with a slash and has no query");
    char *exact = mk_arena_alloc(arena, text.len + 1);
    if (!exact)
        return -ENOMEM;
    exact[0] = '=';
    memcpy(exact + 1, text.p, text.len);
    size_t begin = error->len;
    int err = mk_pattern_parse(&only, mk_str(exact, text.len + 1), arena, error);
    if (err == 0) {
        *path = only.text;
        return 0;
    }
    error->len = begin; /* the advice without that sign */
    err = mk_pattern_parse(&only, text, arena, error);
    assert(err < 0);
    if (value->fault)
        *value->fault = (size_t)(only.text.p - text.p);
    return err;
}

static const struct mk_conf_key keys[] = {
    MK_CONF_KEY_CUSTOM(struct health_conf, live, "LivenessPath", NULL,
                       "A path (`/healthz`): 200 as long as the server responds.", .unit = "path", .parse = parse_path),
    MK_CONF_KEY_CUSTOM(struct health_conf, ready, "ReadinessPath", NULL,
                       "A path (`/readyz`): 200, but 503 once the server was told to stop.", .unit = "path",
                       .parse = parse_path),
    MK_CONF_KEY_LIST(
        struct health_conf, listeners, "Listener", NULL,
        "Respond only on these listeners, by the address of their `Listen` lines. They serve nothing else, and stay "
        "open during a stop until the last request has ended.",
        .flags = MK_CONF_REPEAT),
    {0},
};

static void check_paths(const struct mk_conf_check *check, void *section)
{
    const struct health_conf *h = section;
    if (h->live.p || h->ready.p)
        return;
    if (h->listeners.n)
        mk_conf_error(check, offsetof(struct health_conf, listeners),
                      "\"LivenessPath\" or \"ReadinessPath\" is missing: the listener would have nothing to serve");
    else if (mk_conf_is_given(check))
        mk_conf_warn(check, offsetof(struct health_conf, live),
                     "this section has no effect: write \"LivenessPath /healthz\", \"ReadinessPath /readyz\", or both");
}

static const struct mk_conf_foreign renamed[] = {
    MK_CONF_RENAMED("Live", "LivenessPath"),
    MK_CONF_RENAMED("Ready", "ReadinessPath"),
    {"Path", "there are two: LivenessPath and ReadinessPath"},
    {0},
};

static const struct mk_conf_section sections[] = {
    {.name = "HEALTH",
     .scope = MK_CONF_SCOPE_SERVER,
     .size = sizeof(struct health_conf),
     .keys = keys,
     .foreign = renamed,
     .check = check_paths,
     .doc = MK_CONF_DOC("Whether the server is alive and ready for requests, on every host.")},
    {0},
};

/* ── what is counted ── */

enum probe_count { PROBE_LIVE, PROBE_READY, PROBE_DRAINING, PROBE_COUNTS };

static const struct mk_counter_info probes = {"health", "probes", "answered probes, by kind and result",
                                              MK_COUNTER_SUM};

static const struct mk_counter_row rows[PROBE_COUNTS] = {
    [PROBE_LIVE] = {&probes, {"kind", "liveness", "result", "ok"}},
    [PROBE_READY] = {&probes, {"kind", "readiness", "result", "ok"}},
    [PROBE_DRAINING] = {&probes, {"kind", "readiness", "result", "draining"}},
};

static const struct mk_counter *counters[PROBE_COUNTS];

static int start_process(void **ret_state)
{
    (void)ret_state;
    mk_counters_open(rows, PROBE_COUNTS, counters);
    return 0;
}

/* ── hosts ── */

static int start_host(struct mk_host *host, void **ret_state)
{
    const struct health_conf *h = mk_host_server_conf(host, sections);
    int err = 0;
    for (uint32_t i = 0; i < h->listeners.n; i++) {
        struct mk_str text = h->listeners.items[i];
        if (!mk_host_has_listener(host, text)) {
            mk_host_error(host, h, offsetof(struct health_conf, listeners), i, "there is no line \"Listen %.*s\"",
                          MK_STR_ARG(text));
            err = -EINVAL;
            continue;
        }
        mk_host_accept_in_drain(host, text);
    }
    if (h->listeners.n && err == 0 && !mk_host_reserve_listeners(host, &h->listeners))
        mk_host_warn(
            host, h, offsetof(struct health_conf, listeners), 0,
            "the server listens nowhere else, and serves nothing else here: add a line \"Listen\" for the sites");
    if (h->live.len || h->ready.len || h->listeners.n)
        *ret_state = (void *)(uintptr_t)h;
    return err;
}

/* ── requests ── */

static bool is_health_listener(const struct health_conf *h, struct mk_str text)
{
    for (uint32_t i = 0; i < h->listeners.n; i++)
        if (mk_str_eq(h->listeners.items[i], text))
            return true;
    return false;
}

static void send_health(struct mk_request *req, bool ready)
{
    assert(mk_request_method(req) == MK_GET || mk_request_method(req) == MK_HEAD);
    struct mk_str text = ready ? MK_STR("ready\n") : MK_STR("ok\n");
    bool draining = ready && mk_request_draining(req);
    enum probe_count count = draining ? PROBE_DRAINING : ready ? PROBE_READY : PROBE_LIVE;
    mk_counter_add(counters[count], mk_request_worker(req), 1);
    if (draining) {
        text = MK_STR("draining\n");
        mk_response_set_status(req, 503);
        mk_response_header_ref(req, MK_STR("Retry-After"), MK_STR("1"));
        mk_response_close_connection(req); /* so that the next probe reaches the process that listens then */
    }
    mk_response_header_ref(req, MK_STR("Content-Type"), MK_STR("text/plain"));
    mk_response_header_ref(req, MK_STR("Cache-Control"), MK_STR("no-store"));
    mk_response_write_ref(req, text);
    mk_response_end(req);
}

enum probe { NO_PROBE, PROBE_OF_LIFE, PROBE_OF_READINESS, PROBE_UNKNOWN };

/* Returns what a path is at a listener; PROBE_UNKNOWN: no probe, but the listener serves nothing else. */
static enum probe find_probe(const struct health_conf *h, struct mk_str path, struct mk_str listener)
{
    if (h->listeners.n && !is_health_listener(h, listener))
        return NO_PROBE;
    if (path.len && mk_str_eq(path, h->ready))
        return PROBE_OF_READINESS;
    if (path.len && mk_str_eq(path, h->live))
        return PROBE_OF_LIFE;
    return h->listeners.n ? PROBE_UNKNOWN : NO_PROBE;
}

static enum probe find_probe_of(const struct mk_request *req)
{
    const struct health_conf *h = mk_request_host_state(req, &mk_plugin_health);
    return h ? find_probe(h, mk_request_original_path(req), mk_request_listener(req)) : NO_PROBE;
}

static bool claims_probe(struct mk_request *req)
{
    return find_probe_of(req) != NO_PROBE;
}

static int answer_probe(struct mk_request *req)
{
    enum probe probe = find_probe_of(req);
    enum mk_method method = mk_request_method(req);
    if (probe == NO_PROBE)
        return MK_DECLINED;
    if (probe == PROBE_UNKNOWN)
        mk_response_error(req, 404);
    else if (method != MK_GET && method != MK_HEAD)
        mk_response_method_not_allowed(req, MK_STR("GET, HEAD, OPTIONS"));
    else
        send_health(req, probe == PROBE_OF_READINESS);
    return 0;
}

static void explain_probe(const struct mk_host *host, struct mk_explain *e)
{
    static const char *const names[] = {
        [PROBE_OF_LIFE] = "[HEALTH] answers the liveness check",
        [PROBE_OF_READINESS] = "[HEALTH] answers the readiness check",
        [PROBE_UNKNOWN] = "404: the listener of [HEALTH] serves nothing else",
    };
    const struct health_conf *h = mk_host_state(host, &mk_plugin_health);
    bool is_unknown = h && h->listeners.n && !e->listener.len;
    if (!h)
        return;
    enum probe probe = find_probe(h, e->original_path, is_unknown ? h->listeners.items[0] : e->listener);
    if (probe == NO_PROBE || (is_unknown && probe == PROBE_UNKNOWN))
        return;
    if (e->phase == MK_EXPLAIN_HEAD)
        e->claimed |= !is_unknown;
    else if (e->phase == MK_EXPLAIN_REQUEST)
        mk_explain_add(e, host, h, is_unknown ? MK_EXPLAIN_MAYBE : MK_EXPLAIN_ANSWERS, "%s%s", names[probe],
                       is_unknown ? " at the listeners of its section" : "");
}

static const struct mk_path_hooks path_hooks = {.claims = claims_probe};

static const struct mk_inspect_hooks inspect_hooks = {.explain = explain_probe};

MK_PLUGIN(health) = {
    MK_PLUGIN_HEAD("health", "2.0.0", "tells whether the server is alive and ready"),
    .flags = MK_PLUGIN_CHECKS_ALL | MK_PLUGIN_STATE_NEEDED,
    .sections = sections,
    .start = start_process,
    .host_start = start_host,
    .on_request = answer_probe,
    .paths = &path_hooks,
    .inspection = &inspect_hooks,
};

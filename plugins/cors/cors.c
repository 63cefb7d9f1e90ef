// SPDX-License-Identifier: Apache-2.0
/*
 * cors: lets pages of other origins use this host (the CORS protocol of the Fetch standard). Responds to preflight
 * requests, and adds the headers that browsers need to all other responses. The first rule that matches a path is used.
 */
#include <monkey/base/pattern.h>
#include <monkey/counters.h>
#include <monkey/hooks.h>
#include <monkey/inspect.h>
#include <monkey/plugin.h>

#include <assert.h>

#include "origin.h"

extern const struct mk_plugin mk_plugin_cors;

/* ── directives ── */

struct cors_rule {
    struct mk_pattern match;
    struct mk_conf_list origins, methods, headers, expose;
    uint32_t max_age_ms;
    bool credentials;
    /* header values made of the lists; check_rule() writes them to `texts` */
    struct mk_str methods_text, headers_text, expose_text, age_text;
    bool any_origin;
    char texts[1024];
};

static const struct mk_conf_key keys[] = {
    MK_CONF_KEY_PATTERN(struct cors_rule, match, "Match", "/",
                        "Which paths: `=/exact`, `/prefix` with everything below it, a glob such as `*.json`, or a "
                        "regular expression such as `~^/v[0-9]+/` (`~*` ignores the case)."),
    MK_CONF_KEY_LIST(
        struct cors_rule, origins, "Origins", NULL,
        "The origins that are allowed, as browsers write them (`https://app.example.org`: without a path, and without "
        "the scheme's own port), or `*` for all.",
        .flags = MK_CONF_REQUIRED | MK_CONF_REPEAT),
    MK_CONF_KEY_LIST(struct cors_rule, methods, "Methods", "GET HEAD POST", "The methods that their pages may use."),
    MK_CONF_KEY_LIST(struct cors_rule, headers, "Headers", NULL, "The request headers that they may send."),
    MK_CONF_KEY_LIST(struct cors_rule, expose, "Expose", NULL, "The response headers that their scripts may read."),
    MK_CONF_KEY_DURATION(struct cors_rule, max_age_ms, "MaxAge", "10m",
                         "How long a browser may remember the permission.", .min = 0, .max = 86400000, .unit = "s"),
    MK_CONF_KEY_BOOL(struct cors_rule, credentials, "Credentials", "Off",
                     "Whether they may send cookies and authentication; not with `Origins *`."),
    {0},
};

/* Joins a list for a header: "GET, HEAD". Returns a part of `texts`. */
static struct mk_str join_list(struct mk_buf *texts, const struct mk_conf_list *list)
{
    size_t at = texts->len;
    assert(texts->fixed); /* the texts must not move */
    for (uint32_t i = 0; i < list->n; i++) {
        if (i)
            mk_buf_adds(texts, MK_STR(", "));
        mk_buf_adds(texts, list->items[i]);
    }
    return mk_str(texts->data + at, texts->len - at);
}

/* The server compares origins byte by byte, so one that browsers write differently would never match. */
static void check_origin(const struct mk_conf_check *check, uint32_t nth, struct mk_str origin)
{
    MK_BUF_ON_STACK(sent, 512);
    const char *why = origin_print(origin, &sent);
    if (!why && sent.err)
        why = "it is too long for a host";
    if (why)
        mk_conf_error_nth(check, offsetof(struct cors_rule, origins), nth, "no page has the origin \"%.*s\": %s",
                          MK_STR_ARG(origin), why);
    else if (!mk_str_eq(mk_buf_str(&sent), origin))
        mk_conf_error_nth(check, offsetof(struct cors_rule, origins), nth,
                          "no page has the origin \"%.*s\": browsers send \"%.*s\", so write that", MK_STR_ARG(origin),
                          MK_STR_ARG(mk_buf_str(&sent)));
}

static void check_origins(const struct mk_conf_check *check, struct cors_rule *r)
{
    for (uint32_t i = 0; i < r->origins.n; i++) {
        if (mk_str_eq(r->origins.items[i], MK_STR("*")))
            r->any_origin = true;
        else
            check_origin(check, i, r->origins.items[i]);
    }
    if (r->any_origin && r->origins.n > 1)
        mk_conf_warn(check, offsetof(struct cors_rule, origins), "* allows all origins: the others have no effect");
    if (r->any_origin && r->credentials)
        mk_conf_error(check, offsetof(struct cors_rule, credentials),
                      "browsers refuse credentials for every origin: name the origins");
}

/* Methods are compared byte by byte (RFC 9110 section 9.1), and browsers send these in capitals. */
static void check_methods(const struct mk_conf_check *check, const struct mk_conf_list *methods)
{
    static const struct mk_str known[] = {MK_STR_INIT("GET"),    MK_STR_INIT("HEAD"),  MK_STR_INIT("POST"),
                                          MK_STR_INIT("PUT"),    MK_STR_INIT("PATCH"), MK_STR_INIT("DELETE"),
                                          MK_STR_INIT("OPTIONS")};
    for (uint32_t i = 0; i < methods->n; i++)
        for (size_t k = 0; k < MK_COUNT_OF(known); k++)
            if (mk_str_ieq(methods->items[i], known[k]) && !mk_str_eq(methods->items[i], known[k]))
                mk_conf_warn_nth(check, offsetof(struct cors_rule, methods), i,
                                 "no page uses the method \"%.*s\": write \"%.*s\"", MK_STR_ARG(methods->items[i]),
                                 MK_STR_ARG(known[k]));
}

static void check_rule(const struct mk_conf_check *check, void *section)
{
    struct cors_rule *r = section;
    check_methods(check, &r->methods);
    struct mk_buf texts;
    mk_buf_init_fixed(&texts, r->texts, sizeof(r->texts));
    check_origins(check, r);
    r->methods_text = join_list(&texts, &r->methods);
    r->headers_text = join_list(&texts, &r->headers);
    r->expose_text = join_list(&texts, &r->expose);
    size_t at = texts.len;
    mk_buf_addf(&texts, "%u", r->max_age_ms / 1000);
    r->age_text = mk_str(texts.data + at, texts.len - at);
    if (texts.err)
        mk_conf_error(check, offsetof(struct cors_rule, headers), "the lists of this rule have more than 1,000 bytes");
}

static const struct mk_conf_section sections[] = {
    {.name = "CORS",
     .scope = MK_CONF_SCOPE_HOST,
     .flags = MK_CONF_REPEAT,
     .size = sizeof(struct cors_rule),
     .keys = keys,
     .check = check_rule,
     .doc = MK_CONF_DOC("Lets pages of other origins use this host. The first section that matches a path is used.")},
    {0},
};

/* ── what is counted ── */

enum cors_count { CORS_PREFLIGHTS_ALLOWED, CORS_PREFLIGHTS_REFUSED, CORS_OTHERS_REFUSED, CORS_COUNTS };

static const struct mk_counter_info preflights = {"cors", "preflights", "preflight requests, by result",
                                                  MK_COUNTER_SUM};
static const struct mk_counter_info refused = {
    "cors", "refused_requests", "requests of pages of other hosts, whose origin is not allowed, without preflights",
    MK_COUNTER_SUM};

static const struct mk_counter_row rows[CORS_COUNTS] = {
    [CORS_PREFLIGHTS_ALLOWED] = {&preflights, {"result", "allowed"}},
    [CORS_PREFLIGHTS_REFUSED] = {&preflights, {"result", "refused"}},
    [CORS_OTHERS_REFUSED] = {&refused, {0}},
};

static const struct mk_counter *counters[CORS_COUNTS];

static int start_process(void **ret_state)
{
    (void)ret_state;
    mk_counters_open(rows, CORS_COUNTS, counters);
    return 0;
}

static void add_count(const struct mk_request *req, enum cors_count count)
{
    mk_counter_add(counters[count], mk_request_worker(req), 1);
}

/* ── rules ── */

/* Returns NULL, too, if a pattern fails on the path: then nothing is allowed, not by a later rule either. */
static const struct cors_rule *find_rule(const struct mk_request *req)
{
    const struct mk_host *host = mk_request_host_state(req, &mk_plugin_cors);
    const void *r = NULL;
    if (host)
        mk_host_conf_match(host, sections, offsetof(struct cors_rule, match), mk_request_path(req), &r);
    return r;
}

/* Compares bytes: browsers write an origin in one form only. */
static bool is_allowed_origin(const struct cors_rule *r, struct mk_str origin)
{
    for (uint32_t i = 0; i < r->origins.n; i++)
        if (mk_str_eq(r->origins.items[i], origin))
            return true;
    return r->any_origin;
}

static void add_header(struct mk_request *req, struct mk_str name, struct mk_str value)
{
    assert(!mk_response_header_reserved(name));
    if (value.len && mk_response_header(req, name, value) < 0)
        mk_request_log(req, MK_LOG_WARN, "cors: no memory for the header %.*s, or too many headers", MK_STR_ARG(name));
}

/* ── the preflight ── */

static bool is_preflight(struct mk_request *req)
{
    return mk_request_method(req) == MK_OPTIONS && mk_request_header(req, MK_HEADER_ORIGIN).p &&
           mk_request_header_by_name(req, MK_STR("Access-Control-Request-Method")).p;
}

static int answer_preflight(struct mk_request *req)
{
    if (!is_preflight(req))
        return MK_DECLINED;
    struct mk_str origin = mk_request_header(req, MK_HEADER_ORIGIN);
    const struct cors_rule *r = find_rule(req);
    if (!r)
        return MK_DECLINED;
    bool allowed = is_allowed_origin(r, origin);
    add_count(req, allowed ? CORS_PREFLIGHTS_ALLOWED : CORS_PREFLIGHTS_REFUSED);
    if (!allowed) {
        mk_response_error(req, 403);
        return 0;
    }
    mk_response_set_status(req, 204);
    add_header(req, MK_STR("Access-Control-Allow-Methods"), r->methods_text);
    add_header(req, MK_STR("Access-Control-Allow-Headers"), r->headers_text);
    add_header(req, MK_STR("Access-Control-Max-Age"), r->age_text);
    add_header(req, MK_STR("Vary"), MK_STR("Access-Control-Request-Method, Access-Control-Request-Headers"));
    mk_response_end(req);
    return 0;
}

/* ── all responses ── */

/*
 * Counts a request whose origin no rule allows. Browsers name the origin with POST on the host's own pages, too: these
 * need no permission.
 */
static void count_refused(struct mk_request *req, struct mk_str origin)
{
    struct mk_str host = mk_request_host(req);
    const char *mark = memmem(origin.p, origin.len, "://", 3);
    size_t at = mark ? (size_t)(mark - origin.p) + 3 : origin.len;
    struct mk_str rest = mk_str_after(origin, at);
    bool own = host.len && mk_str_istarts(rest, host) && (rest.len == host.len || rest.p[host.len] == ':');
    if (!own && !is_preflight(req))
        add_count(req, CORS_OTHERS_REFUSED);
}

/* The rule decides, and not a backend: browsers refuse a response with two values. */
static void remove_headers(struct mk_request *req)
{
    static const struct mk_str names[] = {MK_STR_INIT("Access-Control-Allow-Origin"),
                                          MK_STR_INIT("Access-Control-Allow-Credentials"),
                                          MK_STR_INIT("Access-Control-Expose-Headers")};
    for (size_t i = 0; i < MK_COUNT_OF(names); i++)
        mk_response_header_remove(req, names[i]);
}

/*
 * With `Origins *` the headers do not depend on the request: a response to one without Origin may be kept by a browser
 * and used for one with it (Fetch standard, "CORS protocol and HTTP caches").
 */
static void add_cors_headers(struct mk_request *req)
{
    const struct cors_rule *r = find_rule(req);
    if (!r)
        return;
    struct mk_str origin = mk_request_header(req, MK_HEADER_ORIGIN);
    if (!r->any_origin)
        add_header(req, MK_STR("Vary"),
                   MK_STR("Origin")); /* caches must not send the response for one origin to another */
    remove_headers(req);
    if (!r->any_origin && !origin.p)
        return;
    if (!is_allowed_origin(r, origin)) {
        count_refused(req, origin);
        return;
    }
    add_header(req, MK_STR("Access-Control-Allow-Origin"), r->any_origin ? MK_STR("*") : origin);
    if (r->credentials)
        add_header(req, MK_STR("Access-Control-Allow-Credentials"), MK_STR("true"));
    if (mk_request_method(req) != MK_OPTIONS)
        add_header(req, MK_STR("Access-Control-Expose-Headers"), r->expose_text);
}

static int start_host(struct mk_host *host, void **ret_state)
{
    *ret_state = mk_host_conf(host, sections) ? host : NULL; /* a host without rules costs nothing */
    return mk_host_check_patterns(host, sections, offsetof(struct cors_rule, match));
}

static void explain_cors(const struct mk_host *host, struct mk_explain *e)
{
    const void *found = NULL;
    struct mk_str origin = mk_explain_header(e, MK_STR("Origin"));
    if ((e->phase != MK_EXPLAIN_REQUEST && e->phase != MK_EXPLAIN_RESPONSE) || !mk_host_conf(host, sections) ||
        mk_host_conf_match(host, sections, offsetof(struct cors_rule, match), e->path, &found) < 0 || !found)
        return;
    const struct cors_rule *r = found;
    bool preflight = mk_str_eq(e->method, MK_STR("OPTIONS")) && origin.p &&
                     mk_explain_header(e, MK_STR("Access-Control-Request-Method")).p;
    bool allowed = is_allowed_origin(r, origin);
    if (e->phase == MK_EXPLAIN_REQUEST && preflight)
        mk_explain_add(e, host, r, MK_EXPLAIN_ANSWERS, "[CORS] answers the preflight request of %.*s with %s",
                       MK_STR_ARG(origin), allowed ? "204" : "403: it does not allow this origin");
    else if (e->phase == MK_EXPLAIN_RESPONSE && origin.p && !preflight)
        mk_explain_add(e, host, r, MK_EXPLAIN_NOTE, "[CORS] %s the origin %.*s", allowed ? "allows" : "does not allow",
                       MK_STR_ARG(origin));
    else if (e->phase == MK_EXPLAIN_RESPONSE && !preflight)
        mk_explain_add(e, host, r, MK_EXPLAIN_NOTE,
                       r->any_origin ? "[CORS] allows all origins" : "[CORS] holds, but the request has no Origin");
}

static const struct mk_inspect_hooks inspect_hooks = {.explain = explain_cors};

MK_PLUGIN(cors) = {
    MK_PLUGIN_HEAD("cors", "2.0.0", "lets pages of other origins use a host"),
    .flags = MK_PLUGIN_CHECKS_ALL | MK_PLUGIN_STATE_NEEDED,
    .sections = sections,
    .start = start_process,
    .host_start = start_host,
    .on_request = answer_preflight,
    .on_response = add_cors_headers,
    .inspection = &inspect_hooks,
};

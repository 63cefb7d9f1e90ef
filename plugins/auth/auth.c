// SPDX-License-Identifier: Apache-2.0
/*
 * auth: asks clients to log in. This file has the hooks; settings.c has the directives, rules.c what is made of them
 * and checked then, login.c the check of names and passwords, token_login.c that of tokens,
 * forward_login.c the one that another server does.
 */
#include "login.h"

#include <monkey/hooks.h>
#include <monkey/inspect.h>
#include <monkey/program.h>

#include <crypt.h>
#include <errno.h>
#include <openssl/crypto.h>

/* ── the process ── */

static void free_process(struct auth_process *process)
{
    mk_thread_pool_close(&process->pool);
    cache_free(process->cache);
    mk_client_table_free(process->failures);
    mk_stats_registry_release(&process->registry);
    mk_account_free(NULL, process, sizeof(*process));
}

static int start_process(void **ret_state)
{
    static const struct mk_counter_info stats_infos[] = MK_BACKEND_STATS_INFOS("auth");
    struct auth_process *process = mk_account_alloc(NULL, sizeof(*process));
    if (!process)
        return -ENOMEM;
    *process = (struct auth_process){.cache = NULL};
    mk_thread_pool_open(&process->pool, &job_pool_type, 1, 1);
    process->cache = cache_new();
    process->failures = failures_new();
    login_counters_open();
    mk_stats_registry_init(&process->registry, stats_infos);
    if (process->cache && process->failures) {
        *ret_state = process;
        return 0;
    }
    free_process(process);
    return -ENOMEM;
}

static void stop_process(void *state)
{
    free_process(state);
}

static void describe_libraries(struct mk_buf *out)
{
    mk_buf_addf(out, "libcrypt (preferred hash: %s), %s", crypt_preferred_method(), OpenSSL_version(OPENSSL_VERSION));
}

/* ── generations and workers ── */

static int start_generation(struct mk_generation *g, void **ret_state)
{
    struct auth_generation *state = mk_account_alloc(NULL, sizeof(*state));
    if (!state)
        return -ENOMEM;
    *state = (struct auth_generation){.limits = settings_limits(g),
                                      .process = mk_generation_plugin_state(g, &mk_plugin_auth)};
    *ret_state = state;
    return 0;
}

static void stop_generation(struct mk_generation *g, void *state)
{
    struct auth_generation *own = state;
    (void)g;
    rules_close_files(own);
    mk_account_free(NULL, own, sizeof(*own));
}

static int check_generation(struct mk_generation *g, void *state)
{
    int err = 0;
    (void)state;
    for (struct mk_host *host = mk_generation_first_host(g); host; host = mk_host_next(host)) {
        const struct auth_host *h = mk_host_state(host, &mk_plugin_auth);
        if (h && rule_check(host, h) < 0)
            err = -EINVAL;
    }
    return err;
}

static int start_host(struct mk_host *host, void **ret_state)
{
    struct auth_host *h;
    int err = rules_make(host, mk_generation_state(mk_host_generation(host), &mk_plugin_auth), &h);
    const struct auth_conf *c = mk_host_conf(host, auth_sections);
    while (c && c->satisfy != AUTH_ANY)
        c = mk_host_conf_next(host, auth_sections, c);
    if (c)
        mk_host_use_access(host);
    *ret_state = h;
    return err;
}

static void stop_host(struct mk_host *host, void *state)
{
    (void)host;
    rules_free(state);
}

static size_t worker_bytes(unsigned n_files)
{
    return sizeof(struct auth_worker) + n_files * sizeof(struct mk_watched_ref);
}

static int start_worker(struct mk_worker *worker, void **ret_state)
{
    struct mk_generation *g = mk_worker_generation(worker);
    const struct auth_generation *state = mk_generation_state(g, &mk_plugin_auth);
    struct auth_worker *w = mk_account_zalloc(mk_worker_account(worker), worker_bytes(state->n_files));
    if (!w)
        return -ENOMEM;
    mk_list_init(&w->jobs);
    mk_http_idle_init(&w->idle, mk_worker_loop(worker));
    w->n = state->n_files;
    for (const struct auth_file *file = state->files; file; file = file->next) {
        mk_watched_ref_init(&w->refs[file->index], file->watched);
        if (file->kind == AUTH_FILE_KEYS && !w->tokens)
            w->tokens = text_cache_new(mk_worker_account(worker), TOKEN_CACHE_SETS, TOKEN_CACHE_BYTES_MAX);
    }
    if (state->keeps_answers)
        w->answers = text_cache_new(mk_worker_account(worker), FORWARD_CACHE_SETS, FORWARD_CACHE_BYTES_MAX);
    *ret_state = w;
    return 0;
}

static void serve_worker(struct mk_worker *worker, void *state)
{
    struct mk_generation *g = mk_worker_generation(worker);
    struct auth_process *process = mk_generation_plugin_state(g, &mk_plugin_auth);
    const struct auth_generation *generation = mk_generation_state(g, &mk_plugin_auth);
    (void)state;
    mk_thread_pool_set_limits(&process->pool, (unsigned)generation->limits->threads,
                              (unsigned)generation->limits->queue);
}

static void stop_worker(struct mk_worker *worker, void *state)
{
    struct auth_worker *w = state;
    mk_http_idle_close(&w->idle);
    for (unsigned i = 0; i < w->n; i++)
        mk_watched_ref_release(&w->refs[i]);
    text_cache_free(w->tokens);
    text_cache_free(w->answers);
    mk_account_free(mk_worker_account(worker), w, worker_bytes(w->n));
}

/* The connections of other generations of the worker's thread end when they are not used. */
static void shed_memory(struct mk_worker *worker, void *process)
{
    struct auth_worker *w = mk_worker_state(worker, &mk_plugin_auth);
    (void)process;
    if (w)
        mk_http_idle_close(&w->idle);
}

/* ── requests ── */

/* Returns whether a login may take the place of the rules for addresses. */
static bool is_alternative(const struct auth_rule *rule)
{
    return rule && rule->conf->satisfy == AUTH_ANY && rules_protects(rule);
}

/* Before the rules for addresses: a denial waits for the login where that is enough. */
static int defer_denial(struct mk_request *req)
{
    const struct auth_host *h = mk_request_host_state(req, &mk_plugin_auth);
    const struct auth_rule *rule;
    if (h && rules_find(h, mk_request_path(req), &rule) == 0 && is_alternative(rule))
        mk_request_defer_denial(req);
    return MK_DECLINED;
}

/* Returns whether the request is a CORS preflight, which the rule lets pass without a login. */
static bool passes_as_preflight(struct mk_request *req, const struct auth_rule *rule)
{
    return rule && rule->conf->allow_preflight && mk_request_method(req) == MK_OPTIONS &&
           mk_request_header(req, MK_HEADER_ORIGIN).p &&
           mk_request_header_by_name(req, MK_STR("Access-Control-Request-Method")).p;
}

/* Returns whether a login has passed the rule for the path that was decided before. Forward asks about each path. */
static bool has_passed(const struct mk_request *req, const struct auth_rule *rule)
{
    return mk_request_decided_path(req).p && rule->conf->type != AUTH_FORWARD && rules_has_login(req, rule);
}

/* Checks the client certificate, and the login after it. */
static int check_rule(struct mk_request *req, const struct auth_rule *rule)
{
    static int (*const checks[])(struct mk_request * req, const struct auth_rule *rule) = {
        [AUTH_BASIC] = login_check, [AUTH_BEARER] = token_login_check, [AUTH_FORWARD] = forward_login_check};
    struct mk_tls_info tls = {.client = MK_STR_NONE};
    if (rule->conf->client_certificate && (mk_request_tls_info(req, &tls) < 0 || !tls.client.len)) {
        rules_count_login(req, LOGIN_CERTIFICATE, LOGIN_MISSING);
        mk_response_error(req, 403);
        return 0;
    }
    if (rule->conf->client_certificate)
        rules_count_login(req, LOGIN_CERTIFICATE, LOGIN_ACCEPTED);
    if (checks[rule->conf->type])
        return checks[rule->conf->type](req, rule);
    int r = rules_keep_login(req, rule, tls.client);
    return r < 0 ? r : forward_login_strip(req, rule);
}

static int check_request(struct mk_request *req)
{
    const struct auth_host *h = mk_request_host_state(req, &mk_plugin_auth);
    const struct auth_rule *rule = NULL;
    int access = mk_request_access(req), err = h ? rules_find(h, mk_request_path(req), &rule) : 0;
    if (err < 0) {
        mk_response_error(req, 500); /* the rule may protect the path */
        return 0;
    }
    /* A deferred denial stands where no login follows: the path was another one in on_head, or it is a preflight. */
    bool is_open = passes_as_preflight(req, rule);
    if (access >= 400 && (is_open || !is_alternative(rule))) {
        mk_response_error(req, access);
        return 0;
    }
    if (!rule || has_passed(req, rule))
        return MK_DECLINED;
    bool needs_login = rules_protects(rule) && !(access == 1 && is_alternative(rule)) && !is_open;
    return needs_login ? check_rule(req, rule) : forward_login_strip(req, rule);
}

/* Tells whether the request has the certificate and the login that the rule wants for a path, without asking for them.
 */
static bool has_login(struct mk_request *req, const struct auth_rule *rule, struct mk_str path)
{
    struct mk_tls_info tls;
    bool is_forward = rule->conf->type == AUTH_FORWARD; /* which decides by paths, too */
    if (!is_forward && rules_has_login(req, rule))
        return true;
    if (rule->conf->client_certificate && (mk_request_tls_info(req, &tls) < 0 || !tls.client.len))
        return false;
    if (is_forward)
        return forward_login_holds(req, rule, path);
    if (rule->conf->type == AUTH_BEARER)
        return token_login_holds(req, rule);
    return rule->conf->type == AUTH_OFF || login_holds(req, rule);
}

/* Decides for another path as check_request() does, also together with rules for addresses. */
static int allows_path(struct mk_request *req, struct mk_str path)
{
    const struct auth_host *h = mk_request_host_state(req, &mk_plugin_auth);
    const struct auth_rule *rule = NULL;
    int err = h ? rules_find(h, path, &rule) : 0, access = mk_request_access(req);
    if (err < 0)
        return err;
    bool alternative = is_alternative(rule);
    if (access >= 400 && !alternative)
        return 0;
    if (!rule || !rules_protects(rule) || (access == 1 && alternative))
        return 1;
    if (!has_login(req, rule, path))
        return 0;
    if (access >= 400)
        mk_request_allow(req); /* the login takes the place of the denial */
    return 1;
}

static void explain_login(const struct mk_host *host, struct mk_explain *e)
{
    static const char *const types[] = {[AUTH_OFF] = "no login",
                                        [AUTH_BASIC] = "a name and a password",
                                        [AUTH_BEARER] = "a bearer token",
                                        [AUTH_FORWARD] = "the decision of the server in To"};
    const struct auth_host *h = mk_host_state(host, &mk_plugin_auth);
    const struct auth_rule *rule = NULL;
    if (e->phase == MK_EXPLAIN_HEAD && h && rules_find(h, e->path, &rule) == 0)
        e->defers_denial = is_alternative(rule);
    if (e->phase != MK_EXPLAIN_REQUEST || !h)
        return;
    if (rules_find(h, e->path, &rule) < 0)
        mk_explain_add(e, host, NULL, MK_EXPLAIN_ANSWERS,
                       "500, because a pattern of [AUTH] takes too much time for the path");
    else if (rule && !rules_protects(rule))
        mk_explain_add(e, host, rule->conf, MK_EXPLAIN_NOTE, "[AUTH] leaves the path open");
    else if (rule)
        mk_explain_add(e, host, rule->conf,
                       mk_explain_header(e, MK_STR("Authorization")).p || rule->conf->client_certificate ||
                               is_alternative(rule) || rule->conf->type == AUTH_FORWARD
                           ? MK_EXPLAIN_MAYBE
                           : MK_EXPLAIN_ANSWERS,
                       "[AUTH] \"%.*s\" asks for %s%s%s", MK_STR_ARG(rule->conf->realm), types[rule->conf->type],
                       rule->conf->client_certificate ? " and a client certificate" : "",
                       is_alternative(rule) ? ", unless an access rule allows the client (Satisfy any)" : "");
}

static const struct mk_plugin_need needs[] = {{"tls", "To", "https://"}, {0}};

static const struct mk_path_hooks path_hooks = {.allows_path = allows_path};

static const struct mk_process_hooks process_hooks = {.low_on_memory = shed_memory};

static const struct mk_inspect_hooks inspect_hooks = {
    .about = describe_libraries,
    .explain = explain_login,
};

static const struct mk_plugin_interfaces interfaces = {.needs = needs};

MK_PLUGIN(auth) = {
    MK_PLUGIN_HEAD("auth", "2.0.0", "asks clients to log in"),
    .flags = MK_PLUGIN_CHECKS_ALL | MK_PLUGIN_STATE_NEEDED | MK_PLUGIN_DECIDES_ACCESS,
    .sections = auth_sections,
    .start = start_process,
    .stop = stop_process,
    .generation_start = start_generation,
    .generation_stop = stop_generation,
    .host_start = start_host,
    .host_stop = stop_host,
    .generation_check = check_generation,
    .worker_start = start_worker,
    .worker_serve = serve_worker,
    .worker_stop = stop_worker,
    .on_head = defer_denial,
    .on_request = check_request,
    .paths = &path_hooks,
    .process = &process_hooks,
    .inspection = &inspect_hooks,
    .interfaces = &interfaces,
};

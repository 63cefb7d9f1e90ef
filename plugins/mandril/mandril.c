// SPDX-License-Identifier: Apache-2.0
/*
 * mandril: decides which clients may connect, which requests are allowed, and how many of them and how fast.
 *
 *     on_client    [CONNECTIONS]                       connections.c
 *     on_request   [CONNECTIONS], behind proxies       connections.c
 *                  [RULES], first match decides        here, where a delay waits, too
 *                  [CLIENT_LIMITS], first match        client_limits.c
 *     on_response  headers of limits, SendRate         client_limits.c, send_rate.c
 *     on_done      ends what was counted
 */
#include "mandril.h"

#include <monkey/hooks.h>
#include <monkey/program.h>

#include <assert.h>
#include <errno.h>

static const struct mk_counter_info decisions = {"mandril", "decisions",
                                                 "decisions about requests and connections, by section and action",
                                                 MK_COUNTER_SUM};

#define ROWS(kind, section, action) \
    [2 * (kind)] = {&decisions, {"section", section, "action", action, "dry_run", "no"}}, \
         [2 * (kind) + 1] = {&decisions, {"section", section, "action", action, "dry_run", "yes"}}

static const struct mk_counter_row rows[2 * DECISION_KINDS] = {
    ROWS(DECISION_RULE_ALLOW, "rules", "allow"),        ROWS(DECISION_RULE_DENY, "rules", "deny"),
    ROWS(DECISION_RULE_DROP, "rules", "drop"),          ROWS(DECISION_RULE_DELAY, "rules", "delay"),
    ROWS(DECISION_LIMIT_DENY, "client_limits", "deny"), ROWS(DECISION_CONNECTION_DROP, "connections", "drop"),
};

static const struct mk_counter *counters[2 * DECISION_KINDS];

void decision_counters_open(void)
{
    mk_counters_open(rows, 2 * DECISION_KINDS, counters);
}

void decision_counters_add(enum decision_kind kind, bool dry_run, const struct mk_worker *worker)
{
    assert(kind < DECISION_KINDS);
    mk_counter_add(counters[2 * kind + dry_run], worker, 1);
}

static struct mk_str describe_decision(const struct rule_decision *d)
{
    return d->too_costly ? MK_STR("deny 403, because a pattern takes too much time for the path,")
                         : d->rule->conf->action.text;
}

static enum decision_kind get_kind(const struct rule_decision *d)
{
    static const enum decision_kind kinds[] = {
        [ACTION_ALLOW] = DECISION_RULE_ALLOW,
        [ACTION_DENY] = DECISION_RULE_DENY,
        [ACTION_DROP] = DECISION_RULE_DROP,
        [ACTION_DELAY] = DECISION_RULE_DELAY,
    };
    assert(d->kind != ACTION_NONE && (size_t)d->kind < MK_COUNT_OF(kinds));
    return kinds[d->kind];
}

/* Counts and logs a decision; allowed requests are logged at the level debug. */
static void log_decision(const struct rule_decision *d, const struct conditions_subject *subject)
{
    const struct active_section *s = &d->rule->base;
    struct zone_decision line = {
        .place = s->place,
        .name = s->name,
        .what = describe_decision(d),
        .client = subject->client,
        .req = subject->req,
        .level = d->kind == ACTION_ALLOW ? MK_LOG_DEBUG : MK_LOG_INFO,
        .dry_run = d->rule->conf->dry_run,
    };
    decision_counters_add(get_kind(d), line.dry_run, mk_request_worker(subject->req));
    zone_log(s->zone, &line, mk_loop_now_ms(mk_request_loop(subject->req)));
}

/* Sets what a rule decides. Returns false if the rule does not hold. */
static bool ask_rule(const struct rule *rule, struct files_refs *files, const struct conditions_subject *subject,
                     struct rule_decision *ret)
{
    const struct rule_action *action = &rule->conf->action;
    if (!filter_contains(&rule->base.clients, files, &subject->client))
        return false;
    int found = conditions_match(&rule->conf->when, subject);
    *ret = (struct rule_decision){rule, action->kind, action->status, found < 0};
    if (found < 0) {
        ret->kind = ACTION_DENY;
        ret->status = 403;
    }
    return found != 0;
}

/* Returns whether the nth rule was logged when the rules were asked about the request's own path before. */
static bool was_logged(const struct host_state *host, struct files_refs *files,
                       const struct conditions_subject *subject, uint32_t nth)
{
    struct conditions_subject before = *subject;
    struct rule_decision d;
    before.path = mk_request_decided_path(subject->req);
    if (!before.path.p)
        return false;
    for (uint32_t i = 0; (i = mk_pattern_index_next(host->rule_index, before.path, i)) <= nth; i++)
        if (ask_rule(&host->rules[i], files, &before, &d) && (i == nth || !d.rule->conf->dry_run))
            return i == nth;
    return false;
}

/* Finds what the rules decide. `quiet`: neither counts nor logs. */
static struct rule_decision decide_request(const struct host_state *host, struct files_refs *files,
                                           const struct conditions_subject *subject, bool quiet)
{
    struct rule_decision d;
    for (uint32_t i = 0; (i = mk_pattern_index_next(host->rule_index, subject->path, i)) < host->n_rules; i++) {
        if (!ask_rule(&host->rules[i], files, subject, &d))
            continue;
        if (!quiet && !was_logged(host, files, subject, i))
            log_decision(&d, subject);
        if (!d.rule->conf->dry_run)
            return d;
    }
    return (struct rule_decision){.kind = ACTION_NONE};
}

enum { DELAYED_MAX = 4096, ARENA_BYTES_MAX = 256 * 1024 * 1024 };

/* ── the process ── */

static void stop_process(void *ctx)
{
    struct process_state *state = ctx;
    zones_free(state->zones);
    mk_account_free(NULL, state, sizeof(*state));
}

static int start_process(void **ret_state)
{
    struct process_state *state = mk_account_alloc(NULL, sizeof(*state));
    if (!state)
        return -ENOMEM;
    *state = (struct process_state){.zones = zones_new()};
    decision_counters_open();
    *ret_state = state;
    if (state->zones)
        return 0;
    mk_account_free(NULL, state, sizeof(*state));
    return -ENOMEM;
}

/* ── generations and hosts ── */

static int start_generation(struct mk_generation *g, void **ret_state)
{
    struct generation_state *state = mk_account_alloc(NULL, sizeof(*state));
    if (!state)
        return -ENOMEM;
    *state = (struct generation_state){.process = mk_generation_plugin_state(g, &mk_plugin_mandril)};
    mk_arena_init(&state->arena, NULL, ARENA_BYTES_MAX, NULL, 0);
    state->files.arena = &state->arena;
    *ret_state = state;
    return 0;
}

static void stop_generation(struct mk_generation *g, void *ctx)
{
    (void)g;
    struct generation_state *state = ctx;
    sections_stop_connections(state);
    files_close(&state->files);
    mk_arena_release(&state->arena);
    mk_account_free(NULL, state, sizeof(*state));
}

static void free_host(struct host_state *state)
{
    sections_stop_host(state);
    mk_arena_release(&state->arena);
    mk_account_free(NULL, state, sizeof(*state));
}

static int start_host(struct mk_host *host, void **ret_state)
{
    struct host_state *state = mk_account_zalloc(NULL, sizeof(*state));
    if (!state)
        return -ENOMEM;
    mk_arena_init(&state->arena, NULL, ARENA_BYTES_MAX, NULL, 0);
    int err = sections_start_host(host, state, mk_generation_state(mk_host_generation(host), &mk_plugin_mandril));
    if (err < 0) {
        free_host(state);
        return err;
    }
    *ret_state = state;
    return 0;
}

static void stop_host(struct mk_host *host, void *state)
{
    (void)host;
    free_host(state);
}

static int check_generation(struct mk_generation *g, void *state)
{
    struct mk_host *host = mk_generation_first_host(g);
    int err = sections_start_connections(host, state);
    err = err < 0 ? err : shadowed_check_connections(host, state);
    return err < 0 ? err : shadowed_check_hosts(g);
}

/* ── workers ── */

static void stop_worker(struct mk_worker *worker, void *ctx)
{
    (void)worker;
    struct worker_state *state = ctx;
    files_refs_free(state->files);
    mk_account_free(NULL, state, sizeof(*state));
}

static int start_worker(struct mk_worker *worker, void **ret_state)
{
    const struct generation_state *g = mk_generation_state(mk_worker_generation(worker), &mk_plugin_mandril);
    struct worker_state *state = mk_account_alloc(NULL, sizeof(*state));
    if (!state)
        return -ENOMEM;
    state->files = files_refs_new(&g->files);
    *ret_state = state;
    if (state->files)
        return 0;
    mk_account_free(NULL, state, sizeof(*state));
    return -ENOMEM;
}

/* ── connections ── */

static void free_conn(void *state)
{
    struct conn_state *c = state;
    connections_end(&c->counts, c->process);
    send_rate_free_buckets(c);
    mk_account_free(NULL, c, sizeof(*c));
}

struct conn_state *mandril_get_conn(struct mk_connection *conn, struct process_state *process)
{
    struct conn_state *c = mk_connection_state(conn, &mk_plugin_mandril);
    if (c)
        return c;
    c = mk_account_alloc(NULL, sizeof(*c));
    if (!c)
        return NULL;
    *c = (struct conn_state){.process = process};
    if (mk_connection_set_state(conn, &mk_plugin_mandril, c, free_conn) == 0)
        return c;
    mk_account_free(NULL, c, sizeof(*c));
    return NULL;
}

/* ── requests ── */

struct exchange *mandril_get_exchange(struct mk_request *req)
{
    struct exchange *x = mk_request_state(req, &mk_plugin_mandril);
    if (x)
        return x;
    x = mk_arena_zalloc(mk_request_arena(req), sizeof(*x));
    if (!x || mk_request_set_state(req, &mk_plugin_mandril, x) < 0)
        return NULL;
    x->req = req;
    return x;
}

static struct files_refs *get_files(struct mk_request *req)
{
    struct worker_state *w = mk_worker_state(mk_request_worker(req), &mk_plugin_mandril);
    return w->files;
}

/* A request for the whole server ("*", or a host for CONNECT) is one for the root. */
static struct conditions_subject get_subject(struct mk_request *req)
{
    struct mk_str path = mk_request_path(req);
    path = path.len && path.p[0] == '/' ? path : MK_STR("/");
    return (struct conditions_subject){.req = req,
                                       .path = path,
                                       .method = mk_request_method_name(req),
                                       .client = mk_request_client(req)};
}

static void end_delay(struct exchange *x)
{
    if (x->delayed)
        atomic_fetch_sub(&x->delayed->delayed, 1);
    x->delayed = NULL;
}

/* The time of a delay is over: the request continues with the limits. */
static void finish_delay(struct mk_timer *timer)
{
    struct exchange *x = MK_CONTAINER_OF(timer, struct exchange, timer);
    struct mk_request *req = x->req;
    struct conditions_subject subject = get_subject(req);
    end_delay(x);
    int r = client_limits_apply(mk_request_host_state(req, &mk_plugin_mandril), get_files(req), &subject);
    if (r == MK_DECLINED)
        mk_request_decline(req);
    else if (r < 0)
        mk_response_error(req, 503);
}

static int delay_request(struct mk_request *req, const struct rule *rule)
{
    struct zone *zone = rule->base.zone;
    struct exchange *x = mandril_get_exchange(req);
    if (!x)
        return -ENOMEM;
    if (x->delay == rule)
        return MK_DECLINED; /* it has waited when the request's own path was decided */
    x->delay = rule;
    x->delayed = zone;
    mk_timer_init(&x->timer, finish_delay);
    if (atomic_fetch_add(&zone->delayed, 1) >= DELAYED_MAX)
        mk_response_error(req, 503);
    else
        mk_timer_arm(mk_request_loop(req), &x->timer, rule->conf->action.delay_ms);
    return 0;
}

/* Carries out a decision. Returns as on_request; MK_DECLINED: the limits follow, also if a login may do instead. */
static int apply_decision(struct mk_request *req, const struct rule_decision *d)
{
    switch (d->kind) {
    case ACTION_ALLOW:
        mk_request_allow(req);
        return MK_DECLINED;
    case ACTION_DENY:
        if (!d->too_costly)
            return mk_request_deny(req, d->status);
        mk_response_error(req, d->status);
        return 0;
    case ACTION_DROP:
        mk_response_abort(req);
        return 0;
    case ACTION_DELAY:
        return delay_request(req, d->rule);
    default:
        return MK_DECLINED;
    }
}

static int check_request(struct mk_request *req)
{
    const struct host_state *host = mk_request_host_state(req, &mk_plugin_mandril);
    struct generation_state *g = mk_generation_state(mk_worker_generation(mk_request_worker(req)), &mk_plugin_mandril);
    if (!host->n_rules && !host->n_limits && !g->n_connections)
        return MK_DECLINED;
    struct files_refs *files = get_files(req);
    struct conditions_subject subject = get_subject(req);
    bool counts_conn = g->n_connections && !mk_request_decided_path(req).p;
    int r = counts_conn ? connections_check_request(g, files, &subject) : MK_DECLINED;
    if (r != MK_DECLINED)
        return r;
    struct rule_decision d = decide_request(host, files, &subject, false);
    r = apply_decision(req, &d);
    return r == MK_DECLINED ? client_limits_apply(host, files, &subject) : r;
}

/* Tells what the rules would decide for GET of another path. Limits do not count. */
static int allows_path(struct mk_request *req, struct mk_str path)
{
    const struct host_state *host = mk_request_host_state(req, &mk_plugin_mandril);
    struct conditions_subject subject = {.req = req,
                                         .path = path,
                                         .method = MK_STR("GET"),
                                         .client = mk_request_client(req)};
    if (!host)
        return 0;
    struct rule_decision d = decide_request(host, get_files(req), &subject, true);
    if (d.kind == ACTION_ALLOW)
        mk_request_allow(req);
    if (d.kind == ACTION_DENY && !d.too_costly)
        return mk_request_deny(req, d.status) == MK_DECLINED; /* a login may take its place */
    return d.kind != ACTION_DENY && d.kind != ACTION_DROP;
}

/* A rule with another condition, also one that allows, leaves the path to some clients. */
static bool denies_path(const struct mk_host *host, struct mk_str path)
{
    const struct host_state *state = mk_host_state(host, &mk_plugin_mandril);
    for (uint32_t i = 0; (i = mk_pattern_index_next(state->rule_index, path, i)) < state->n_rules; i++) {
        const struct rule_conf *conf = state->rules[i].conf;
        const struct conditions *when = &conf->when;
        int found = conf->dry_run ? 0 : when->match.text.p ? mk_pattern_match(&when->match, path) : 1;
        bool is_for_all = !when->networks.n && !when->file.len && !when->when.n && !when->foreign_referer;
        bool denies = conf->action.kind == ACTION_DENY || conf->action.kind == ACTION_DROP;
        if (found && (!denies || is_for_all)) /* with Satisfy any a login may take the place of a denial */
            return denies && (conf->action.kind == ACTION_DROP || !mk_host_uses_access(host));
    }
    return false;
}

static struct process_state *get_process(const struct mk_request *req)
{
    return mk_generation_plugin_state(mk_worker_generation(mk_request_worker(req)), &mk_plugin_mandril);
}

static void add_to_response(struct mk_request *req)
{
    struct exchange *x = mk_request_state(req, &mk_plugin_mandril);
    if (!x)
        return;
    client_limits_add_headers(x);
    send_rate_start(x, get_process(req));
}

static void end_exchange(struct mk_request *req)
{
    struct exchange *x = mk_request_state(req, &mk_plugin_mandril);
    if (!x)
        return;
    if (x->timer.fn)
        mk_timer_cancel(&x->timer);
    end_delay(x);
    client_limits_end(x);
    connections_end(&x->conn_counts, get_process(req));
    send_rate_end(x);
}

static const struct mk_connection_hooks connection_hooks = {.on_client = connections_check_client};

static const struct mk_path_hooks path_hooks = {.allows_path = allows_path, .denies_path = denies_path};

static const struct mk_inspect_hooks inspect_hooks = {
    .explain = explain_sections,
    .commands = mandril_commands,
};

MK_PLUGIN(mandril) = {
    MK_PLUGIN_HEAD("mandril", "2.0.0", "allows, refuses and limits clients"),
    .flags = MK_PLUGIN_DECIDES_ACCESS,
    .sections = mandril_sections,
    .start = start_process,
    .stop = stop_process,
    .generation_start = start_generation,
    .generation_stop = stop_generation,
    .host_start = start_host,
    .host_stop = stop_host,
    .generation_check = check_generation,
    .worker_start = start_worker,
    .worker_stop = stop_worker,
    .on_request = check_request,
    .on_response = add_to_response,
    .on_done = end_exchange,
    .connections = &connection_hooks,
    .paths = &path_hooks,
    .inspection = &inspect_hooks,
};

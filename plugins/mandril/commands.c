// SPDX-License-Identifier: Apache-2.0
/*
 * The command `rules` of `monkey shell`: the sections of all hosts with their decisions, and the clients that they
 * know.
 */
#include "mandril.h"

#include <monkey/kit/json.h>

#include <fnmatch.h>
#include <stdio.h>

/*
 * Tells an operator which [RULES] and [CLIENT_LIMITS] a request meets. Counts and logs nothing.
 */
/* Whether a section is about the client of a request. */
enum client_match { CLIENT_OTHER, CLIENT_MATCHES, CLIENT_UNKNOWN };

static enum client_match match_client(const struct active_section *s, struct files_refs *files,
                                      const struct mk_explain *e)
{
    bool all = !s->clients.networks && s->clients.file < 0;
    if (all || !e->client.family)
        return all ? CLIENT_MATCHES : CLIENT_UNKNOWN;
    return filter_contains(&s->clients, files, &e->client) ? CLIENT_MATCHES : CLIENT_OTHER;
}

static bool is_deferred(const struct rule *rule, const struct mk_explain *e)
{
    return e->defers_denial && rule->conf->action.kind == ACTION_DENY;
}

/* Returns what the plain words for an action are worth: an allow lets the request continue. */
static enum mk_explain_effect get_effect(const struct rule *rule, enum client_match client, const struct mk_explain *e)
{
    uint8_t kind = rule->conf->action.kind;
    if (rule->conf->dry_run || kind == ACTION_ALLOW || kind == ACTION_DELAY)
        return MK_EXPLAIN_NOTE;
    return client == CLIENT_UNKNOWN || is_deferred(rule, e) ? MK_EXPLAIN_MAYBE : MK_EXPLAIN_ANSWERS;
}

/* Returns whether the rule decides, so that no later one is asked. */
static bool explain_rule(const struct rule *rule, struct files_refs *files, const struct conditions_subject *subject,
                         struct mk_explain *e)
{
    enum client_match client = match_client(&rule->base, files, e);
    int match = client == CLIENT_OTHER ? 0 : conditions_match(&rule->conf->when, subject);
    if (match == 0)
        return false;
    if (match < 0)
        mk_explain_add(e, subject->host, rule->conf, MK_EXPLAIN_ANSWERS,
                       "deny 403, because a pattern takes too much time for the path");
    else
        mk_explain_add(e, subject->host, rule->conf, get_effect(rule, client, e), "[RULES] \"%.*s\": %.*s%s%s%s",
                       MK_STR_ARG(rule->base.name), MK_STR_ARG(rule->conf->action.text),
                       rule->conf->dry_run ? ", in a dry run" : "",
                       is_deferred(rule, e) ? ", unless a login takes its place (Satisfy any)" : "",
                       client == CLIENT_UNKNOWN ? ", for some clients: name one with client=ADDRESS" : "");
    return !rule->conf->dry_run && client == CLIENT_MATCHES;
}

static bool explain_limit(const struct limit *limit, struct files_refs *files, const struct conditions_subject *subject,
                          struct mk_explain *e)
{
    const struct limit_conf *conf = limit->conf;
    enum client_match client = match_client(&limit->base, files, e);
    if (client == CLIENT_OTHER || conditions_match(&conf->when, subject) == 0)
        return false;
    char rate[64] = "no rate";
    if (conf->rate.n)
        snprintf(rate, sizeof(rate), "%u requests in %u s", conf->rate.n, conf->rate.period_s);
    mk_explain_add(e, subject->host, conf, conf->dry_run ? MK_EXPLAIN_NOTE : MK_EXPLAIN_MAYBE,
                   "[CLIENT_LIMITS] \"%.*s\": 429 above %s, %lld under way, %llu bytes/s%s%s",
                   MK_STR_ARG(limit->base.name), rate, (long long)conf->requests_max,
                   (unsigned long long)conf->send_rate, conf->dry_run ? ", in a dry run" : "",
                   client == CLIENT_UNKNOWN ? ", for some clients: name one with client=ADDRESS" : "");
    return !conf->dry_run && client == CLIENT_MATCHES;
}

void explain_sections(const struct mk_host *host, struct mk_explain *e)
{
    const struct host_state *state = mk_host_state(host, &mk_plugin_mandril);
    const struct worker_state *w = mk_worker_state(e->worker, &mk_plugin_mandril);
    struct conditions_subject subject = {
        .path = e->path, .method = e->method, .client = e->client, .explained = e, .host = host};
    if (e->phase != MK_EXPLAIN_REQUEST || !state || !w)
        return;
    for (uint32_t i = 0; i < state->n_rules; i++)
        if (explain_rule(&state->rules[i], w->files, &subject, e))
            break;
    for (uint32_t i = 0; i < state->n_limits && !e->answered; i++)
        if (explain_limit(&state->limits[i], w->files, &subject, e))
            break;
}

enum { RULE_BYTES = 2100, PATTERN_BYTES = 256, PATTERN_ARG_MAX = 200, PLACE_BYTES = 4096 };

/* A list under way. call->at has the index of the host in the upper half, and the rows that it has had in the lower. */
struct listing {
    struct mk_command_call *call;
    const struct mk_host *host;
    uint32_t at_row; /* of the host, of those that this call has gone through */
    char pattern[PATTERN_BYTES];
};

static void add_clients(struct mk_buf *row, const struct zone *zone)
{
    if (!zone->table)
        return;
    struct mk_client_counts counts = mk_client_table_counts(zone->table);
    mk_json_number(row, "clients", (int64_t)counts.entries);
    mk_json_number(row, "clients_max", zone->clients_max);
    mk_json_number(row, "evicted", (int64_t)counts.evicted);
}

static void add_row(const struct listing *l, const struct active_section *s, const void *conf, const char *text)
{
    struct mk_buf *row = mk_command_begin_row(l->call);
    MK_BUF_ON_STACK(place, PLACE_BYTES);
    mk_host_conf_origin(l->host, conf, &place);
    mk_json_number(row, "hits", (int64_t)atomic_load(&s->zone->decisions));
    mk_json_cstr(row, "rule", text);
    mk_json_str(row, "host", mk_host_label(l->host));
    mk_json_str(row, "place", mk_buf_str(&place));
    add_clients(row, s->zone);
    mk_command_end_row(l->call);
}

/* Adds the row of a section, unless a call before has. Returns 0 or MK_AGAIN. */
static int list_section(struct listing *l, const struct active_section *s, const void *conf, const char *kind,
                        struct mk_str what)
{
    char text[RULE_BYTES];
    if (l->at_row++ < (uint32_t)l->call->at)
        return 0;
    if (!mk_command_has_room(l->call))
        return MK_AGAIN;
    l->call->at++;
    snprintf(text, sizeof(text), "[%s] \"%.*s\"%s%.*s", kind, MK_STR_ARG(s->name), what.len ? ": " : "",
             MK_STR_ARG(what));
    if (fnmatch(l->pattern, text, 0) == 0)
        add_row(l, s, conf, text);
    return 0;
}

/* Those of the server come with the first host. */
static int list_host(struct listing *l)
{
    const struct mk_generation *own = mk_host_generation(l->host);
    const struct generation_state *g = mk_generation_state(own, &mk_plugin_mandril);
    const struct host_state *state = mk_host_state(l->host, &mk_plugin_mandril);
    bool is_first = l->host == mk_generation_first_host(own);
    int err = 0;
    for (uint32_t i = 0; is_first && i < g->n_connections && err == 0; i++)
        err = list_section(l, &g->connections[i].base, g->connections[i].conf, "CONNECTIONS", MK_STR(""));
    for (uint32_t i = 0; state && i < state->n_rules && err == 0; i++)
        err = list_section(l, &state->rules[i].base, state->rules[i].conf, "RULES", state->rules[i].conf->action.text);
    for (uint32_t i = 0; state && i < state->n_limits && err == 0; i++)
        err = list_section(l, &state->limits[i].base, state->limits[i].conf, "CLIENT_LIMITS", MK_STR(""));
    return err;
}

static void read_pattern(const struct mk_command_call *call, char ret[PATTERN_BYTES])
{
    struct mk_str word = call->n_args ? call->args[0] : MK_STR("");
    snprintf(ret, PATTERN_BYTES, "*%.*s*", (int)(word.len < PATTERN_ARG_MAX ? word.len : PATTERN_ARG_MAX), word.p);
}

static int list_rules(struct mk_command_call *call)
{
    struct listing l = {.call = call, .host = mk_generation_first_host(mk_worker_generation(call->worker))};
    int err = 0;
    read_pattern(call, l.pattern);
    for (uint64_t i = call->at >> 32; i && l.host; i--)
        l.host = mk_host_next(l.host);
    for (; l.host && err == 0; l.host = mk_host_next(l.host)) {
        l.at_row = 0;
        err = list_host(&l);
        if (err == 0)
            call->at = ((call->at >> 32) + 1) << 32;
    }
    return err;
}

const struct mk_command mandril_commands[] = {
    {.name = "rules",
     .arguments = "[PATTERN]",
     .help = "access rules and limits, with the number of their decisions and the clients that they know",
     .args_max = 1,
     .run = list_rules},
    {0},
};

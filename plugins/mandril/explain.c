// SPDX-License-Identifier: Apache-2.0
/*
 * Tells an operator which [RULES] and [CLIENT_LIMITS] a request meets. Counts and logs nothing.
 */
#include "mandril.h"

#include <stdio.h>

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

/* Returns what the plain words for an action are worth: an allow lets the request continue. */
static enum mk_explain_effect get_effect(const struct rule *rule, enum client_match client)
{
    uint8_t kind = rule->conf->action.kind;
    if (rule->conf->dry_run || kind == ACTION_ALLOW || kind == ACTION_DELAY)
        return MK_EXPLAIN_NOTE;
    return client == CLIENT_UNKNOWN ? MK_EXPLAIN_MAYBE : MK_EXPLAIN_ANSWERS;
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
        mk_explain_add(e, subject->host, rule->conf, get_effect(rule, client), "[RULES] \"%.*s\": %.*s%s%s",
                       MK_STR_ARG(rule->base.name), MK_STR_ARG(rule->conf->action.text),
                       rule->conf->dry_run ? ", in a dry run" : "",
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

// SPDX-License-Identifier: Apache-2.0
/*
 * Finds the first rule of a host that holds for a request.
 */
#include "mandril.h"

#include <assert.h>

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

struct rule_decision rules_decide(const struct host_state *host, struct files_refs *files,
                                  const struct conditions_subject *subject, bool quiet)
{
    struct rule_decision d;
    for (uint32_t i = 0; i < host->n_rules; i++) {
        if (!ask_rule(&host->rules[i], files, subject, &d))
            continue;
        if (!quiet)
            log_decision(&d, subject);
        if (!d.rule->conf->dry_run)
            return d;
    }
    return (struct rule_decision){.kind = ACTION_NONE};
}

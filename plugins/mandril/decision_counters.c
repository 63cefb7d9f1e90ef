// SPDX-License-Identifier: Apache-2.0
/*
 * The counters of decision_counters.h.
 */
#include "decision_counters.h"

#include <assert.h>

static const struct mk_counter_info decisions = {"mandril", "decisions",
                                                 "decisions about requests and connections, by section and action",
                                                 MK_COUNTER_SUM};

static const struct {
    const char *section, *action;
} names[DECISION_KINDS] = {
    [DECISION_RULE_ALLOW] = {"rules", "allow"},        [DECISION_RULE_DENY] = {"rules", "deny"},
    [DECISION_RULE_DROP] = {"rules", "drop"},          [DECISION_RULE_DELAY] = {"rules", "delay"},
    [DECISION_LIMIT_DENY] = {"client_limits", "deny"}, [DECISION_CONNECTION_DROP] = {"connections", "drop"},
};

void decision_counters_open(struct decision_counters *ret)
{
    for (unsigned i = 0; i < DECISION_KINDS; i++)
        for (unsigned dry = 0; dry < 2; dry++) {
            struct mk_counter_label labels[] = {{"section", mk_str_c(names[i].section)},
                                                {"action", mk_str_c(names[i].action)},
                                                {"dry_run", dry ? MK_STR("yes") : MK_STR("no")}};
            ret->all[i][dry] = mk_counter_open(&decisions, labels, 3);
        }
}

void decision_counters_add(const struct decision_counters *c, enum decision_kind kind, bool dry_run,
                           const struct mk_worker *worker)
{
    assert(kind < DECISION_KINDS);
    mk_counter_add(c->all[kind][dry_run], worker, 1);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * The counters of decision_counters.h.
 */
#include "decision_counters.h"

#include <assert.h>

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

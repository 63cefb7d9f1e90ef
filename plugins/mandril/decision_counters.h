// SPDX-License-Identifier: Apache-2.0
/*
 * Counts the decisions of all sections together, by the kind of section and what it does. Those of single sections are
 * in their zones (zone.h): sections are too many for own counters.
 */
#ifndef MANDRIL_DECISION_COUNTERS_H
#define MANDRIL_DECISION_COUNTERS_H

#include <monkey/counters.h>

enum decision_kind {
    DECISION_RULE_ALLOW,
    DECISION_RULE_DENY,
    DECISION_RULE_DROP,
    DECISION_RULE_DELAY,
    DECISION_LIMIT_DENY,
    DECISION_CONNECTION_DROP,
    DECISION_KINDS,
};

/* Opens the counters. In the start of the plugin. */
void decision_counters_open(void);
/* Counts a decision. In the thread of the worker. */
void decision_counters_add(enum decision_kind kind, bool dry_run, const struct mk_worker *worker);

#endif

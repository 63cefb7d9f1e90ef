// SPDX-License-Identifier: Apache-2.0
/*
 * The sections of the plugin as structs.
 */
#ifndef MANDRIL_SETTINGS_H
#define MANDRIL_SETTINGS_H

#include "conditions.h"

enum action_kind { ACTION_NONE, ACTION_ALLOW, ACTION_DENY, ACTION_DROP, ACTION_DELAY };

struct rule_action {
    uint8_t kind; /* enum action_kind */
    uint16_t status;
    uint32_t delay_ms;
    struct mk_str text; /* "deny 403", for the log */
};

/* [RULES] */
struct rule_conf {
    struct conditions when;
    struct mk_str name;
    struct rule_action action;
    bool dry_run;
};

struct request_rate {
    uint32_t n, period_s; /* n 0: no limit */
};

enum send_rate_for { SEND_RATE_CONNECTION, SEND_RATE_CLIENT };

/* [CLIENT_LIMITS] */
struct limit_conf {
    struct conditions when;
    struct mk_str name;
    struct request_rate rate;
    int64_t burst, requests_max, clients_max;
    uint64_t send_rate; /* bytes per second; 0: no limit */
    int send_rate_for;  /* enum send_rate_for */
    bool dry_run;
};

/* [CONNECTIONS], of the server */
struct connection_conf {
    struct mk_networks networks;
    struct mk_str file, name;
    int action; /* enum connection_action */
    int64_t connections_max, clients_max;
    bool dry_run;
};

enum connection_action { CONNECTION_ALLOW, CONNECTION_DROP };

enum { SECTION_RULES, SECTION_LIMITS, SECTION_CONNECTIONS };
extern const struct mk_conf_section mandril_sections[];

/* Parse an Action and a Rate line. Return as mk_conf_parse_fn. */
int settings_parse_action(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error);
int settings_parse_rate(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error);

#endif

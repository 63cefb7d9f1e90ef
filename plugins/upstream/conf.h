// SPDX-License-Identifier: Apache-2.0
/*
 * The directives of [UPSTREAM].
 */
#ifndef UPSTREAM_CONF_H
#define UPSTREAM_CONF_H

#include "hash_by.h"

#include <monkey/dial.h>
#include <monkey/plugin.h>

enum { UPSTREAM_SERVERS_MAX = 64, UPSTREAM_WEIGHT_MAX = 256, UPSTREAM_PORT = 80 };

enum upstream_balance { UPSTREAM_LEAST_LOADED, UPSTREAM_ROUND_ROBIN, UPSTREAM_HASH, UPSTREAM_FIRST };
enum upstream_retry { UPSTREAM_RETRY_CONNECT, UPSTREAM_RETRY_IDEMPOTENT, UPSTREAM_RETRY_OFF };

/* A line `Server`. */
struct server_line {
    struct mk_str name; /* the address, as it was written */
    const struct mk_dial_target *target;
    uint32_t weight;
    bool is_backup, is_down;
};

struct server_lines {
    struct server_line *items;
    uint32_t n;
};

/* A section; constant once the configuration is loaded. */
struct upstream_conf {
    struct mk_str name;
    struct server_lines servers;
    int balance, retry; /* enum upstream_balance, upstream_retry */
    struct hash_by hash_by;
    int64_t retry_most, eject_after, eject_most;
    uint32_t eject_time_ms;
};

extern const struct mk_conf_section upstream_sections[];

#endif

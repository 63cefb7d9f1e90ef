// SPDX-License-Identifier: Apache-2.0
/*
 * The directives of [UPSTREAM].
 */
#ifndef UPSTREAM_CONF_H
#define UPSTREAM_CONF_H

#include "eject.h"
#include "hash_by.h"
#include "lookup.h"
#include "retry.h"
#include "sticky.h"

#include <monkey/dial.h>
#include <monkey/plugin.h>

enum { UPSTREAM_SERVERS_MAX = 64, UPSTREAM_WEIGHT_MAX = 256, UPSTREAM_PORT = 80 };

/* The name of the cookie of Balance Sticky, without StickyCookie. */
#define UPSTREAM_COOKIE "server"

enum upstream_balance {
    UPSTREAM_LEAST_LOADED,
    UPSTREAM_ROUND_ROBIN,
    UPSTREAM_HASH,
    UPSTREAM_STICKY,
    UPSTREAM_FIRST,
};

/* A line `Server`. */
struct server_line {
    struct mk_str name;                  /* the address, as it was written */
    const struct mk_dial_target *target; /* with is_srv: the name of the service */
    uint32_t weight;
    bool has_weight, is_backup, is_down, is_draining, is_srv;
};

struct server_lines {
    struct server_line *items;
    uint32_t n;
};

/* A section; constant once the configuration is loaded. */
struct upstream_conf {
    struct mk_str name;
    struct server_lines servers;
    int balance; /* enum upstream_balance */
    struct hash_by hash_by;
    struct mk_cookie sticky_cookie; /* without a value */
    struct mk_str sticky_secret;    /* a file; empty: none */
    int64_t max_connections, queue; /* 0: no limit; none waits */
    uint32_t queue_timeout_ms, hold_ms;
    struct retry retry;
    int64_t retry_most, retry_budget;
    uint32_t retry_time_ms;
    struct eject_on eject_on;
    int64_t eject_after, eject_most;
    uint32_t eject_slower_ms, eject_time_ms, slow_start_ms;
    uint32_t resolve_ms; /* the longest that addresses of names count; 0: names are looked up for each connection */
    struct lookup_servers name_servers;
    int family; /* enum lookup_family */
};

/* Tells whether the addresses of a line are looked up: it has a name, neither an address nor a path. */
static inline bool server_line_is_name(const struct upstream_conf *conf, const struct server_line *line)
{
    return conf->resolve_ms && !line->target->addr;
}

/* Checks a section as a whole; `section` is a struct upstream_conf. */
void upstream_conf_check(const struct mk_conf_check *check, void *section);

/* Two tables for each section: struct upstream_conf and struct check_conf (check_conf.h). */
enum { UPSTREAM_SECTION, CHECK_SECTION };
extern const struct mk_conf_section upstream_sections[];

#endif

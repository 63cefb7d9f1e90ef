// SPDX-License-Identifier: Apache-2.0
/*
 * What the files of the plugin share: its state in the process, a generation, a host, a worker, a connection and an
 * exchange.
 */
#ifndef MANDRIL_H
#define MANDRIL_H

#include <monkey/command.h>
#include <monkey/plugin.h>

#include "conditions.h"
#include "decision_counters.h"
#include "files.h"
#include "settings.h"
#include "zone.h"

extern const struct mk_plugin mk_plugin_mandril;

/* The clients for which a section is. */
struct client_filter {
    struct network_set *networks; /* of Network; NULL: none */
    int file;                     /* index of File; -1: none */
};

/* A section in use. */
struct active_section {
    const struct conditions *when; /* NULL: of connections */
    struct client_filter clients;
    struct zone *zone;
    struct mk_str name, place; /* `place`: file and line */
};

struct rule {
    struct active_section base;
    const struct rule_conf *conf;
};

struct limit {
    struct active_section base;
    const struct limit_conf *conf;
    struct bucket_rate rate, send_rate;
    struct mk_str policy; /* the value of RateLimit-Policy */
};

struct connection_rule {
    struct active_section base;
    const struct connection_conf *conf;
};

struct process_state {
    struct zones *zones;
};

struct generation_state {
    struct mk_arena arena;
    struct files files;
    struct process_state *process;
    struct connection_rule *connections;
    uint32_t n_connections;
};

struct host_state {
    struct mk_arena arena;
    struct process_state *process;
    struct rule *rules;
    struct limit *limits;
    uint32_t n_rules, n_limits;
};

struct worker_state {
    struct files_refs *files;
};

struct conn_count;
struct conn_bucket;

/* Of a connection that is counted, or has sent a response with SendRate; may be older than the generation in use. */
struct conn_state {
    struct process_state *process;
    struct conn_count *counts;   /* of connections.c */
    struct conn_bucket *buckets; /* of throttle.c */
};

/* A section has counted the request. */
struct limit_count {
    struct limit_count *next;
    const struct limit *limit;
    struct mk_client_ref ref; /* of the request under way, for MaxRequests */
};

/* What a section says of a request. */
struct limit_answer {
    bool fine, has_rate;
    uint64_t remaining, reset_s; /* of RateLimit, with `has_rate` */
    uint32_t retry_after_s;      /* 0: the request was not refused */
};

/* Of an exchange that waits, is counted, or whose response gets headers; in its arena. */
struct exchange {
    struct mk_request *req;
    const struct limit *limit;  /* that is used; NULL: none */
    struct limit_count *counts; /* also of sections in a dry run */
    struct limit_answer answer;
    struct zone *delayed;           /* the zone of the rule that delays it; NULL: none does */
    struct conn_count *conn_counts; /* of connections.c, behind a proxy */
    struct mk_timer timer;
    struct throttle *throttle;
};

/* Returns whether a client is one of a section's. */
static inline bool filter_contains(const struct client_filter *f, struct files_refs *files,
                                   const struct mk_address *client)
{
    if (!f->networks && f->file < 0)
        return true;
    return (f->networks && networks_contain(f->networks, client)) ||
           (f->file >= 0 && networks_contain(files_get(files, f->file), client));
}

/* Returns the state of an exchange, which is made if there is none; NULL without memory. */
struct exchange *mandril_get_exchange(struct mk_request *req);
/* Returns the state of a connection, which is made if there is none; NULL without memory. */
struct conn_state *mandril_get_conn(struct mk_connection *conn, struct process_state *process);

/* ── sections.c: makes sections ready when a configuration is loaded ── */

/*
 * Prepare and release the sections of a host. sections_start_host() reports what is wrong.
 * Returns 0, -EINVAL or -ENOMEM.
 */
int sections_start_host(struct mk_host *host, struct host_state *state, struct generation_state *g);
void sections_stop_host(struct host_state *state);
/* Likewise for the sections of connections; `host` is any host. */
int sections_start_connections(struct mk_host *host, struct generation_state *g);
void sections_stop_connections(struct generation_state *g);

/* ── shadowed.c ── */

/*
 * Warn of sections that can never match, because earlier ones do; the first one also reports limits of one name with
 * different rates. In generation_check. Return 0, -EINVAL or -ENOMEM.
 */
int shadowed_check_hosts(struct mk_generation *g);
int shadowed_check_connections(struct mk_host *host, const struct generation_state *g);

/* ── rules.c ── */

struct rule_decision {
    const struct rule *rule; /* NULL: none has decided */
    uint8_t kind;            /* enum action_kind; ACTION_NONE: the request continues */
    uint16_t status;
    bool too_costly; /* a pattern took too much time */
};

/* Finds what the rules decide. `quiet`: neither counts nor logs. */
struct rule_decision rules_decide(const struct host_state *host, struct files_refs *files,
                                  const struct conditions_subject *subject, bool quiet);

/* ── limits.c ── */

/*
 * Applies the limits of the host to a request.
 * Returns MK_DECLINED (it continues), 0 (it was refused) or -ENOMEM.
 */
int limits_apply(const struct host_state *host, struct files_refs *files, const struct conditions_subject *subject);
/* Adds the headers of rate limits to a response. */
void limits_add_headers(struct exchange *x);
/* Ends the counts of a request under way. */
void limits_end(struct exchange *x);

/* ── throttle.c ── */

/* Makes the response keep to SendRate. */
void throttle_start(struct exchange *x, struct process_state *process);
void throttle_end(struct exchange *x);
/* Frees what a connection has kept for its next responses. */
void throttle_free_buckets(struct conn_state *c);

/* ── explain.c ── */

/* The hook of struct mk_plugin. */
void explain_sections(const struct mk_host *host, struct mk_explain *e);

/* ── commands.c: what the plugin adds to `monkey shell` ── */

/* The command `rules`; ends with a row without a name. */
extern const struct mk_command mandril_commands[];

/* ── connections.c ── */

/* Applies [CONNECTIONS] to the client of a connection. Returns as on_client. */
int connections_check_client(struct mk_connection *conn);
/* Applies [CONNECTIONS] to a request. Returns MK_DECLINED (it continues), 0 (it was dropped) or -ENOMEM. */
int connections_check_request(struct generation_state *g, struct files_refs *files,
                              const struct conditions_subject *subject);
/* End the counts of a request under way, or of a connection. */
void connections_end(struct conn_count **counts, struct process_state *process);

#endif

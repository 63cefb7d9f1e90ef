// SPDX-License-Identifier: Apache-2.0
#ifndef MANDRIL_MANDRIL_H
#define MANDRIL_MANDRIL_H

#include "networks.h"

#include <monkey/counters.h>
#include <monkey/inspect.h>
#include <monkey/kit/client_table.h>
#include <monkey/kit/command.h>
#include <monkey/kit/hash_table.h>
#include <monkey/kit/watched.h>
#include <monkey/kit/when.h>
#include <monkey/plugin.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Token buckets in whole numbers, so that no rounding adds tokens or loses them. A bucket that is zeroed is full. Time
 * is in microseconds of a monotonic clock. The caller locks.
 */
/*
 * A token is made of so many units: those of a request are filled per second, minute, hour or day, whose numbers of
 * microseconds divide it.
 */
#define BUCKET_REQUEST 86400000000ULL
#define BUCKET_BYTE 1000000ULL

enum { BUCKET_REQUESTS_MAX = 1000000 };
#define BUCKET_BYTES_MAX (1ULL << 40)

struct bucket {
    uint64_t used;  /* units that are missing */
    uint64_t at_us; /* at this time */
};

struct bucket_rate {
    uint64_t token;    /* units of a token */
    uint64_t per_us;   /* units that are filled in a microsecond; 0: no limit */
    uint64_t capacity; /* units of a full bucket */
};

/* Returns a rate of `n` requests in `period_s` seconds (1, 60, 3600 or 86400), of which `burst` may come at once. */
struct bucket_rate bucket_request_rate(uint32_t n, uint32_t period_s, uint32_t burst);
/* Returns a rate of bytes per second. About 100 ms of them, 2 KB at least, may be sent at once. */
struct bucket_rate bucket_byte_rate(uint64_t bytes_per_s);

/* Returns the number of tokens that are in the bucket now. */
uint64_t bucket_count(struct bucket *b, const struct bucket_rate *rate, uint64_t now_us);
/* Takes tokens. Returns false, and takes none, if there are fewer. */
bool bucket_take(struct bucket *b, const struct bucket_rate *rate, uint64_t tokens, uint64_t now_us);
/* Puts tokens back that were taken. */
void bucket_put(struct bucket *b, const struct bucket_rate *rate, uint64_t tokens);
/* Returns the microseconds until the bucket, as bucket_count() has left it, has so many tokens. */
uint64_t bucket_wait_us(const struct bucket *b, const struct bucket_rate *rate, uint64_t tokens);
/* Returns the time from which on the bucket is full. */
uint64_t bucket_full_at(const struct bucket *b, const struct bucket_rate *rate);

/*
 * A zone is what a section keeps as long as the process: its counters, its clients, and when it has logged. A section
 * finds its zone by host and name, so that a reload loses nothing; one of monkey.conf has one zone for all hosts.
 *
 *     process   struct zones ─► struct zone ◄─ sections of one generation or, during a reload, of several
 */
struct zones;

/* What is kept of a client. */
struct zone_client {
    struct bucket rate, sent;
    uint32_t requests, connections; /* under way */
    uint64_t idle_at;               /* the latest that zone_unlock_client() was called with */
};

struct zone {
    struct mk_hash_node node;
    _Atomic unsigned refs;         /* the last one is dropped under the lock of the zones */
    uint32_t clients_max;          /* 0: no clients */
    struct mk_client_table *table; /* NULL without clients */
    struct mk_str key;
    _Atomic uint64_t decisions;           /* since the section has this name */
    _Atomic uint64_t log_turn;            /* the ten seconds of the last line ... */
    _Atomic uint32_t lines;               /* ... the lines in it ... */
    _Atomic uint64_t left_out;            /* ... and those that were left out since the last line */
    _Atomic uint64_t evicted, evicted_ms; /* clients that were logged as evicted, and when that was checked */
    _Atomic uint32_t delayed;             /* requests that wait */
    char text[];
};

struct zones *zones_new(void);
/* Frees the zones, to which no section may refer any more. */
void zones_free(struct zones *zones);

/*
 * Returns the zone of that key, which is made if there is none, with a table of `clients` clients (0: none). A zone
 * whose table has another size gets its own new one. Returns NULL without memory. Any thread.
 */
struct zone *zones_get(struct zones *zones, struct mk_str key, uint32_t clients);
/* Takes one more reference of a zone to which the caller has one, and returns the zone. Any thread. */
struct zone *zones_hold(struct zone *zone);
/* Drops a reference; the last one frees the zone. `zone` may be NULL. Any thread. */
void zones_put(struct zones *zones, struct zone *zone);

/*
 * Unlocks the record of a client. It is worth keeping until `idle_at`, and until the latest time of an earlier call:
 * sections of one name, or of two generations, may have other rates, and must not make the record a new one before its
 * time.
 */
void zone_unlock_client(struct zone *zone, struct zone_client *client, uint64_t idle_at);

/* What is logged of a decision. */
struct zone_decision {
    struct mk_str place, name; /* of the section */
    struct mk_str what;        /* "deny 403" */
    struct mk_address client;
    struct mk_request *req; /* NULL: a connection */
    enum mk_log_level level;
    bool dry_run;
    struct mk_connection *conn; /* NULL: a request */
};

/*
 * Counts a decision, and logs it, at most 10 lines in a second; after the message are the peer, the listener and the
 * host. `now_ms`: of the loop. Any thread.
 */
void zone_log(struct zone *zone, const struct zone_decision *decision, uint64_t now_ms);
/* Logs how many clients were evicted since the last time, at most once in a second. `host`: NULL: none. Any thread. */
void zone_check_evictions(struct zone *zone, const struct mk_host *host, struct mk_str place, uint64_t now_ms);

/*
 * The conditions under which a section applies to a request: all that are set must hold.
 */
/* The fields of a section's struct. What is not set is empty, and holds for all requests. */
struct conditions {
    struct mk_pattern match;
    struct mk_networks networks;
    struct mk_str file;
    struct mk_when when;
    bool foreign_referer;
};

/* What a request is asked about. */
struct conditions_subject {
    struct mk_request *req; /* NULL: a request that is only explained */
    struct mk_str path, method;
    struct mk_address client;
    const struct mk_explain *explained; /* with `req` NULL: the request, and its host */
    const struct mk_host *host;
};

/*
 * Tells whether the conditions other than networks hold.
 * Returns 1, 0, or -errno: it is not known, because a pattern takes too much time or memory.
 */
int conditions_match(const struct conditions *c, const struct conditions_subject *subject);
/* Returns whether the conditions other than networks hold for every request for which those of `later` hold. */
bool conditions_cover(const struct conditions *c, const struct conditions *later);

/*
 * The files of networks of a generation, each opened once, and read again when it changes. Workers look at the current
 * networks without a lock.
 */
/* Of a generation; begins zeroed. */
struct files {
    struct mk_arena *arena;
    struct network_file **items;
    uint32_t n;
};

/* Of a worker. */
struct files_refs {
    uint32_t n;
    struct mk_watched_ref refs[];
};

/*
 * Opens a file, unless it is open, and returns its index.
 * Returns -ENOMEM, or another -errno with a sentence in `message`.
 */
int files_open(struct files *files, struct mk_str path, struct mk_buf *message);
/* Closes all files; no worker may have references any more. */
void files_close(struct files *files);

/* Returns the references of a worker; NULL without memory. */
struct files_refs *files_refs_new(const struct files *files);
void files_refs_free(struct files_refs *refs);

/* Returns the current networks of a file, valid until the next call for the same worker and file. */
static inline const struct network_set *files_get(struct files_refs *refs, int index)
{
    return mk_watched_ref_get(&refs->refs[index]);
}

/*
 * Counts the decisions of all sections together, by the kind of section and what it does. Those of single sections are
 * in their zones: sections are too many for own counters.
 */
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

/*
 * The sections of the plugin as structs.
 */
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

/*
 * What the files of the plugin share: its state in the process, a generation, a host, a worker, a connection and an
 * exchange.
 */
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
    const struct mk_pattern_index *rule_index, *limit_index; /* of their patterns */
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
    struct conn_bucket *buckets; /* of send_rate.c */
};

/* What a section says of a request. */
struct limit_answer {
    bool fine, has_rate;
    uint64_t remaining, reset_s; /* of RateLimit, with `has_rate` */
    uint32_t retry_after_s;      /* 0: the request was not refused */
};

/* A section has counted the request. */
struct limit_count {
    struct limit_count *next;
    const struct limit *limit;
    struct mk_client_ref ref; /* of the request under way, for MaxRequests; zeroed: another section has it, or none */
    bool has_token;           /* it, or a section of the same zone before it, has taken one for Rate */
    struct limit_answer answer;
};

/* Of an exchange that waits, is counted, or whose response gets headers; in its arena. */
struct exchange {
    struct mk_request *req;
    const struct limit *limit;  /* of `answer`; NULL: none */
    const struct limit *sends;  /* whose SendRate holds; NULL: none */
    struct limit_count *counts; /* also of sections in a dry run */
    struct limit_answer answer;
    const struct rule *delay;       /* that has delayed it last; NULL: none has */
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
/* Indexes the patterns of the sections, again after one was added. Returns 0 or -ENOMEM. */
int sections_index_host(struct host_state *state);
void sections_stop_host(struct host_state *state);
/* Likewise for the sections of connections; `host` is any host. */
int sections_start_connections(struct mk_host *host, struct generation_state *g);
void sections_stop_connections(struct generation_state *g);

/* ── sections that never match ── */

/*
 * Warn of sections that can never match, because earlier ones do; the first one also reports limits of one name with
 * different rates. In generation_check. Return 0, -EINVAL or -ENOMEM.
 */
int shadowed_check_hosts(struct mk_generation *g);
int shadowed_check_connections(struct mk_host *host, const struct generation_state *g);

/* ── rules ── */

struct rule_decision {
    const struct rule *rule; /* NULL: none has decided */
    uint8_t kind;            /* enum action_kind; ACTION_NONE: the request continues */
    uint16_t status;
    bool too_costly; /* a pattern took too much time */
};

/* ── client_limits.c ── */

/*
 * Applies the limits of the host to a request.
 * Returns MK_DECLINED (it continues), 0 (it was refused) or -ENOMEM.
 */
int client_limits_apply(const struct host_state *host, struct files_refs *files,
                        const struct conditions_subject *subject);
/* Adds the headers of rate limits to a response. */
void client_limits_add_headers(struct exchange *x);
/* Ends the counts of a request under way. */
void client_limits_end(struct exchange *x);

/* ── send_rate.c ── */

/* Makes the response keep to SendRate. */
void send_rate_start(struct exchange *x, struct process_state *process);
void send_rate_end(struct exchange *x);
/* Frees what a connection has kept for its next responses. */
void send_rate_free_buckets(struct conn_state *c);

/* ── explain ── */

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

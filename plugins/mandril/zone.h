// SPDX-License-Identifier: Apache-2.0
/*
 * A zone is what a section keeps as long as the process: its counters, its clients, and when it has logged. A section
 * finds its zone by host and name, so that a reload loses nothing; one of monkey.conf has one zone for all hosts.
 *
 *     process   struct zones ─► struct zone ◄─ sections of one generation or, during a reload, of several
 */
#ifndef MANDRIL_ZONE_H
#define MANDRIL_ZONE_H

#include <monkey/client_table.h>
#include <monkey/hash_table.h>
#include <monkey/plugin.h>

#include <stdatomic.h>

#include "bucket.h"

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

#endif

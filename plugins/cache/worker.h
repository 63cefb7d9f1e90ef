// SPDX-License-Identifier: Apache-2.0
/*
 * What the files of the plugin share: the cache of the process, and its state in a worker. Each file uses those to its
 * left only:
 *
 *     directives, entry ◄─ notify, counters ◄─ parents ◄─ sweep ◄─ load ◄─ check, root_name ◄─── cache
 *     path_list ◄─ places ◄─ scan ◄─────────────── load ◄─ preload ◄─ warm ◄────────────────── cache
 *                  folder_walk ◄──────────────────────────  preload, scan ◄─ call ◄─ api, commands
 *     answer, stats, access ◄─ api ◄─ cache
 */
#ifndef CACHE_WORKER_H
#define CACHE_WORKER_H

#include "counters.h"
#include "directives.h"
#include "entry.h"
#include "notify.h"

#include <monkey/event_stream.h>
#include <monkey/log_limit.h>

/* The cache of the process: it outlives generations. */
struct cache {
    struct mk_store *store;
    _Atomic uint64_t next_sweep_ms; /* of the descriptors, by any worker */
    _Atomic uint64_t bytes_max, body_bytes_max, descriptors_max, missing_max;
    _Atomic uint64_t descriptors_wanted; /* by the configuration */
    _Atomic int fd_alarm; /* from this descriptor on the process is short of them: files are not kept open */
    uint64_t generations; /* that were loaded; by one thread at a time */
    pthread_mutex_t limits_lock;
    uint64_t limits_number; /* of the generation whose limits are in force; under the lock */
    pthread_mutex_t stats_lock;
    struct mk_store_stats counted[ENTRY_KINDS]; /* what the counters have of the store; under the lock */
    struct cache_notify_counts notify_counted;  /* likewise */
    _Atomic unsigned calls;                     /* of the API, now */
    unsigned streams;                           /* the same; changed atomically (<monkey/event_stream.h>) */
    _Atomic uint64_t first_served;              /* the number of the first generation that served; 0: none yet */
    struct notify notify;
    struct cache_counters counters;
};

/* The state of a worker. */
struct cache_worker {
    struct cache *cache;
    struct mk_worker *worker;
    struct mk_loop *loop;
    struct mk_timer sweep;
    bool has_rules;                  /* a host of the generation has sections about files */
    bool has_limits;                 /* the limits of its generation were set, or later ones are in force */
    const struct mk_item *last_item; /* EachCycle: was revalidated at `last_turn` */
    uint64_t last_turn;
    uint64_t notified;                    /* Notify: changes were read at this arrival of requests, */
    const struct mk_file_root *confirmed; /* and this root is that of its path; or NULL */
    struct parents *parents;              /* NULL: none yet */
    uint64_t sample;                      /* which hits of hot entries are counted */
    struct mk_event_streams streams;      /* of figures */
    struct mk_log_limit_row denied;       /* clients that were not shown the page */
};

/* A name that is looked up for a request, or loaded on a disk thread. */
struct cache_lookup {
    struct cache *cache;
    struct cache_worker *worker; /* this and the next are NULL on a disk thread */
    struct mk_request *req;
    const struct mk_host *host;
    const struct mk_file_name *name;
    const struct files_policy *policy;
    struct entry_key key;
    uint64_t now_ms;
    uint64_t turn;        /* of the loop */
    int64_t wall_seconds; /* set before a name is loaded */
};

/* Returns whether the root's folder is still that of the key: what was opened since then is below it. */
static inline bool lookup_is_in_root(const struct cache_lookup *l)
{
    return l->name->version % 2 == 0 && l->name->root->version(l->name->context) == l->name->version;
}

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * What the files of the plugin share: the cache of the process, and its state in a worker. Each file uses those to its
 * left only:
 *
 *     directives, entry ◄─ counters ◄─ sweep ◄─ load ◄─ check ◄─ cache
 */
#ifndef CACHE_WORKER_H
#define CACHE_WORKER_H

#include "counters.h"
#include "entry.h"
#include "directives.h"

/* The cache of the process: it outlives generations. */
struct cache {
    struct mk_store *store;
    _Atomic uint64_t next_sweep_ms; /* of the descriptors, by any worker */
    _Atomic uint64_t body_bytes_max, descriptors_max, missing_max;
    _Atomic uint64_t descriptors_wanted; /* by the configuration */
    _Atomic int fd_alarm; /* from this descriptor on the process is short of them: files are not kept open */
    uint64_t generations; /* that were loaded; by one thread at a time */
    pthread_mutex_t limits_lock;
    uint64_t limits_number; /* of the generation whose limits are in force; under the lock */
    pthread_mutex_t stats_lock;
    struct mk_store_stats counted[ENTRY_KINDS]; /* what the counters have of the store; under the lock */
};

/* The state of a worker. */
struct cache_worker {
    struct cache *cache;
    struct mk_worker *worker;
    struct mk_timer sweep;
    bool has_limits;                 /* the limits of its generation were set, or later ones are in force */
    const struct mk_item *turn_item; /* EachCycle: was revalidated in the turn `turn` */
    uint64_t turn;
};

/* A name that is looked up for a request. */
struct cache_lookup {
    struct cache_worker *worker;
    struct mk_request *req;
    const struct mk_file_name *name;
    const struct files_policy *policy;
    struct entry_key key;
    uint64_t now_ms;
};

/* Returns whether the root's folder is still that of the key: what was opened since then is below it. */
static inline bool lookup_is_in_root(const struct cache_lookup *l)
{
    return l->name->version % 2 == 0 && l->name->root->version(l->name->context) == l->name->version;
}

#endif

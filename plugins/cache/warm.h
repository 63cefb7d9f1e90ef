// SPDX-License-Identifier: Apache-2.0
/*
 * Loads what `Warm` of the hosts names, once for each generation: on a disk thread. The first requests of a process
 * wait for it, WarmTimeout at most; what is left then, and all of it after a reload, is loaded while the workers serve.
 */
#ifndef CACHE_WARM_H
#define CACHE_WARM_H

#include "preload.h"

/* The run of a generation. */
struct warm {
    struct cache *cache;
    struct mk_generation *generation;
    bool is_needed; /* a host has Warm */
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool has_started, has_ended; /* under the lock */
    _Atomic bool is_awaited;     /* workers wait: it does not pause */
    _Atomic bool cancelled;
    struct mk_job job;
    struct mk_worker *worker; /* held while it runs */
    uint64_t now_ms;
    int64_t wall_seconds;
    /* where it is */
    const struct mk_host *host;
    const struct cache_rule *rule;
    uint32_t item;
    bool has_preload, has_item;
    struct preload preload; /* of the host */
};

void warm_init(struct warm *warm, struct cache *cache, struct mk_generation *g);
void warm_release(struct warm *warm);
/* Looks for hosts with `Warm`. In generation_check. */
void warm_find_hosts(struct warm *warm);

/*
 * Checks the lists of a section, which must be readable and not too long. Reports what is wrong. Returns 0 or -EINVAL.
 */
int warm_check_rule(struct mk_host *host, const struct cache_rule *rule);

/*
 * Starts the run, in the first worker that serves. `wait_ms`: how long this worker waits for its end. In worker_serve.
 */
void warm_serve(struct warm *warm, struct mk_worker *worker, uint32_t wait_ms);
/* Ends the run; what it loads now is still kept. */
void warm_cancel(struct warm *warm);

#endif

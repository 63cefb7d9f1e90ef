// SPDX-License-Identifier: Apache-2.0
/*
 * What the process knows of a group, over reloads: its budget of retries, and the requests that wait for a server,
 * because those that could be used have as many requests as they may have (MaxConnections), or none can be used (Hold).
 *
 *     group_choose ─► WAITING ─┬─ a server has room, or responds again ─► GRANTED ─► fn, in the thread of the request
 *                              ├─ the time is over ─► fn
 *                              └─ pool_cancel
 *
 * They wait in queues for all workers, under a lock: a server goes to the first request that can use it. Those of one
 * queue can all use the same servers, so that only the first one of each is looked at. A reload is for those that wait,
 * too: they get the servers, and the MaxConnections, of the configuration that is in use.
 */
#ifndef UPSTREAM_POOL_H
#define UPSTREAM_POOL_H

#include "retry.h"

#include <monkey/counters.h>
#include <monkey/list.h>

#include <pthread.h>

enum pool_count { POOL_QUEUED, POOL_HELD, POOL_REFUSED, POOL_WAITED, POOL_COUNTS };

/* Never empty. All are held or none; they want the same server, if any, and have tried the same ones. */
struct mk_upstream_queue {
    struct mk_list node;
    struct mk_list waiting; /* struct mk_upstream_wait, in their order */
    uint32_t n;
    int err; /* why the first one has no server: -EBUSY or -ENXIO, as far as is known */
    bool is_held;
    const struct mk_upstream_server *sticky; /* as its requests, which is only compared; likewise the next */
    unsigned n_tried;
    const struct mk_upstream_server *tried[MK_UPSTREAM_TRIES_MAX];
};

struct pool {
    struct pool *next;
    unsigned refs; /* under the lock of all pools, as `next` */
    pthread_mutex_t lock;
    const struct mk_upstream_group *current; /* that of the configuration in use, under the lock; NULL: none */
    struct mk_list queues;                   /* in the order of their first requests, likewise */
    uint64_t order;                          /* of the next request that waits, likewise */
    uint32_t n_queued;                       /* those of MaxConnections, likewise */
    uint64_t served_ms;                      /* when the queue was looked at without a sign, likewise */
    _Atomic uint32_t n_waiting;
    struct retry_budget budget;
    const struct mk_counter *counters[POOL_COUNTS];
    struct mk_str name;
    char name_bytes[];
};

enum pool_state { POOL_IDLE, POOL_WAITING, POOL_GRANTED };

/* Finds or makes the pool of a group, and holds it. Returns NULL without memory. Any thread, as the others. */
struct pool *pool_hold(struct mk_str name);
void pool_release(struct pool *pool);

/* Hides the counters of groups that no generation has. */
void pools_hide_unused(void);

/* Puts a request at the end of its queue, under the lock. Returns 0 or -ENOMEM. */
int pool_add(struct pool *pool, struct mk_upstream_wait *wait);
/* Takes it off its queue, under the lock. */
void pool_remove(struct pool *pool, struct mk_upstream_wait *wait);
/* Takes it off its queue and has its `fn` called with a server, under the lock. */
void pool_grant(struct pool *pool, struct mk_upstream_wait *wait, struct mk_upstream_server *server);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * What the process knows of servers: their load and failures, over reloads and for all workers. A server is one of a
 * group: a line `Server`, or an address of a name there. It lasts as long as a generation names it, and as long as it
 * has requests.
 *
 *     in use ── EjectAfter failures in a row ─► ejected for EjectTime ─► in use; EjectTime doubles until a response
 *
 * The time ends an ejection, and the next request that is given to the server notes it; or a check that succeeds does.
 */
#ifndef UPSTREAM_SERVERS_H
#define UPSTREAM_SERVERS_H

#include "admin.h"
#include "balance.h"
#include "conf.h"
#include "health.h"
#include "pool.h"

#include <monkey/epoch.h>
#include <monkey/upstreams.h>

#include <stdatomic.h>

enum { EJECT_MS_MAX = 300000 };

enum server_count {
    SERVER_REQUESTS,
    SERVER_ACTIVE,
    SERVER_WAITED,
    SERVER_FAILURES,
    SERVER_EJECTIONS,
    SERVER_EJECTED,
    SERVER_CHECKS,
    SERVER_FAILED_CHECKS,
    SERVER_UP,
    SERVER_DOWN,
    SERVER_COUNTS
};

/* What checks know of a server; under the lock of all servers. */
struct server_checks {
    struct health_state state;
    uint64_t id;      /* of what is checked; 0: nothing is */
    uint64_t next_ms; /* when the next check is due, by the clock of the loops */
};

struct server {
    struct mk_upstream_server base;
    struct mk_arena arena; /* of its strings */
    struct server *next;
    struct pool *pool; /* of its group, held */
    struct mk_retired retired;
    unsigned refs;        /* lists of members; under the lock of all servers, as `next` */
    _Atomic bool is_gone; /* no list has it */
    const struct mk_counter *counters[SERVER_COUNTS];
    _Atomic uint32_t load;          /* requests under way */
    _Atomic uint32_t failures;      /* in a row */
    _Atomic uint32_t ejections;     /* since the last response */
    _Atomic uint64_t ejected_until; /* in ms of the loop's clock; 0: it was not, or its end was noted */
    _Atomic uint64_t slow_from_ms;  /* when SlowStart began; 0: never */
    _Atomic bool has_responded;     /* since a place was given back for which a request is held */
    uint64_t probe_ms;              /* with Hold: it is not tried before; under the lock of the pool */
    struct admin *admin;            /* of its line, held */
    _Atomic uint8_t health;         /* enum health: that of the checks */
    struct server_checks checks;
};

static inline struct server *server_of(struct mk_upstream_server *base)
{
    return (struct server *)(void *)((char *)base - offsetof(struct server, base));
}

/*
 * Finds or makes the server of a line, or of an address of its name (empty: none), and holds it. Returns NULL without
 * memory. Any thread, as the others.
 */
struct server *servers_hold(struct pool *pool, struct mk_str name, struct mk_str address);
/* Hold it once more, while a list has it, and end a hold. */
void server_get(struct server *server);
void server_release(struct server *server);
/* Returns the queue of what loops may still see. */
struct mk_epoch_queue *servers_retired(void);

static inline bool server_is_ejected(struct server *server, uint64_t now_ms)
{
    return atomic_load_explicit(&server->ejected_until, memory_order_relaxed) > now_ms;
}

/* Tells whether the last request was served. */
static inline bool server_is_well(struct server *server)
{
    return !atomic_load_explicit(&server->failures, memory_order_relaxed);
}

/*
 * Tells whether the server serves those that Hold keeps: it has responded since this was asked. An error that is no
 * failure of the server, such as one of this machine, says nothing, and the next request would have it at once.
 */
static inline bool server_take_response(struct server *server)
{
    return server_is_well(server) && atomic_exchange(&server->has_responded, false);
}

/*
 * Count a request that is with the server, and end it; its load was raised when it was chosen. In the thread of the
 * worker, as the others.
 */
void server_note_begin(struct server *server, const struct mk_worker *worker);
void server_end(struct server *server, const struct mk_worker *worker);
/* Takes back a request that was not counted. The server may be gone after this, and after server_end(). */
void server_drop_load(struct server *server);
/* A request is given to the server: notes the end of an ejection. */
void server_note_chosen(struct server *server, uint64_t now_ms);
/* The server has served a request, or has failed. */
void server_note_response(struct server *server, const struct mk_worker *worker);
void server_note_failure(struct server *server, const struct upstream_conf *conf,
                         const struct mk_upstream_outcome *outcome, const struct mk_worker *worker, uint64_t now_ms);

/* Ends an ejection, as the first response does. Returns whether there was one. Any thread. */
bool server_readmit(struct server *server);

static inline bool server_is_down(struct server *server)
{
    return atomic_load_explicit(&server->health, memory_order_relaxed) == HEALTH_DOWN;
}

/*
 * The server is checked from now on, as `id` says, which is not 0. Returns in how many ms the next check is due: at
 * once if another check, or none, was configured before. What was known stays until its result.
 */
uint64_t server_begin_checks(struct server *server, uint64_t id, uint64_t now_ms);
/* Notes the result of a check, with the reason of a failure, and logs a transition. Returns the ms until the next one.
 */
uint32_t server_note_check(struct server *server, const struct health_rules *rules, const char *reason,
                           const struct mk_worker *worker, uint64_t now_ms);
/* The server is not checked any more: it may get requests. */
void server_end_checks(struct server *server, const struct mk_worker *worker, uint64_t now_ms);

/* Hides the counters of servers that no generation names. */
void servers_hide_unused(void);

#endif

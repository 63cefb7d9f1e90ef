// SPDX-License-Identifier: Apache-2.0
#ifndef UPSTREAM_SERVERS_H
#define UPSTREAM_SERVERS_H

#include "conf.h"
#include "process.h"

#include <monkey/base/epoch.h>
#include <monkey/base/list.h>
#include <monkey/base/str.h>
#include <monkey/counters.h>
#include <monkey/upstreams.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Whether a server gets requests by the will of its operator: what its line says, unless the shell has set something
 * else. What the shell has set belongs to the line `Server` of a group, with all addresses of its name, and to the
 * process: it stays over reloads and ends with the process.
 *
 *     up      gets requests
 *     drain   gets only those whose sticky cookie names it
 *     down    gets none
 *
 * Requests under way continue in any case.
 */
enum admin_state { ADMIN_UNSET, ADMIN_UP, ADMIN_DRAIN, ADMIN_DOWN, ADMIN_STATES };

enum { ADMIN_COUNTS = ADMIN_STATES - ADMIN_DRAIN };

/* What is counted of the servers of a line. */
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

/* What the shell has set, and what the configuration says that is in use. */
struct admin {
    struct admin *next;
    struct mk_str group, line;
    unsigned refs;                /* servers, and groups with the line, which may have no server now; under the lock */
    _Atomic uint32_t state;       /* enum admin_state, set by the shell */
    _Atomic uint32_t weight_plus; /* likewise: the weight and one; 0: it was not set */
    /* under the lock */
    enum admin_state configured;                     /* ADMIN_UNSET: the configuration in use has no such line */
    uint32_t weight;                                 /* of the configuration */
    bool is_current;                                 /* admin_configure() has named it */
    enum admin_state shown;                          /* by the counters */
    const struct mk_counter *counters[ADMIN_COUNTS]; /* for `drain` and `down`: 1 while it holds */
    const struct mk_counter *server_counters[SERVER_COUNTS]; /* NULL: it has had none. Under the lock of all servers */
};

/* "up", "drain", "down"; "" for ADMIN_UNSET. */
extern const char *const admin_state_names[ADMIN_STATES];

/* Returns the state of that name; ADMIN_UNSET: there is none. */
enum admin_state admin_find_state(struct mk_str name);

/* Returns what was set for a line of a group; NULL without memory. Any thread. */
struct admin *admin_hold(struct mk_str group, struct mk_str line);
/* `admin` may be NULL. Any thread. */
void admin_release(struct admin *admin);

/* Returns the state that is in force: up, drain or down. Any thread. */
enum admin_state admin_get_state(struct admin *admin);

/* Sets the state by the shell; ADMIN_UNSET: that of the configuration holds. Any thread. */
void admin_set_state(struct admin *admin, enum admin_state state);

/*
 * A configuration is in use from now on: admin_configure() for each of its lines, then admin_end_configuring(), which
 * finds those that are gone. Changes are logged, with `is_reload` also lines that are new. One thread at a time.
 */
void admin_configure(struct admin *admin, enum admin_state state, uint32_t weight, bool is_reload);
void admin_end_configuring(void);

/*
 * Which of several servers gets a request. Pure.
 */
/* A server that may get the request. */
struct candidate {
    uint32_t weight; /* 0: it gets none */
    uint32_t load;   /* requests under way */
    uint64_t hash;   /* of its name */
};

/* What RoundRobin knows of a server. */
struct turn {
    int64_t credit;
};

/*
 * Return the index of a candidate, -1 if none has a weight. `random` are 64 random bits. LeastLoaded: of two, drawn by
 * weight, the one with the smaller load for its weight.
 */
int balance_least_loaded(const struct candidate *c, unsigned n, uint64_t random);
int balance_first(const struct candidate *c, unsigned n);
/*
 * The same by the hash of a key: that of the request and of a server decide together, so that only the keys of a server
 * that goes move (rendezvous hashing), each server by its weight. One with a quarter more to do than its share is
 * passed over (bounded load).
 */
int balance_hash(const struct candidate *c, unsigned n, uint64_t key);
/*
 * The same, in turns by weight, such that the turns of a server lie as far apart as can be. `turns`, which this call
 * changes, begin with zeros.
 */
int balance_round_robin(const struct candidate *c, struct turn *const *turns, unsigned n);

/*
 * What the results of checks say of a server, and when the next check is due. Pure.
 *
 *     unknown ── the first result ─► up ── CheckDown failures in a row ─► down
 *                                    up ◄── CheckUp successes in a row ── down
 */
/* A server that is not down may get requests. */
enum health { HEALTH_UNKNOWN, HEALTH_UP, HEALTH_DOWN };

struct health_rules {
    uint32_t down, up; /* results in a row */
    uint32_t interval_ms;
};

/* All zeros: there was no result. */
struct health_state {
    uint8_t health;  /* enum health */
    bool has_passed; /* the last result, and how often it came in a row */
    uint32_t in_row; /* 0: the next result decides at once */
};

/* Returns the state after a result. */
struct health_state health_next(struct health_state state, const struct health_rules *rules, bool has_passed);
/*
 * Returns how long to wait until the next check: the interval less 10 to 25 % by `random`; a fifth of it, but not less
 * than 100 ms, while the last results contradict the state.
 */
uint32_t health_get_wait_ms(const struct health_state *state, const struct health_rules *rules, uint32_t random);

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
    unsigned refs;                           /* under the lock of all pools, as `next` */
    struct lock lock;                        /* LOCK_POOL */
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

/* Puts a request at the end of its queue, under the lock. Returns 0 or -ENOMEM. */
int pool_add(struct pool *pool, struct mk_upstream_wait *wait);
/* Takes it off its queue, under the lock. */
void pool_remove(struct pool *pool, struct mk_upstream_wait *wait);
/* Takes it off its queue and has its `fn` called with a server, under the lock. */
void pool_grant(struct pool *pool, struct mk_upstream_wait *wait, struct mk_upstream_server *server);

/*
 * What the process knows of servers: their load and failures, over reloads and for all workers. A server is one of a
 * group: a line `Server`, or an address of a name there. It lasts as long as a generation names it, and as long as it
 * has requests.
 *
 *     in use ── EjectAfter failures in a row ─► ejected for EjectTime ─► in use; EjectTime doubles until a response
 *
 * The time ends an ejection, and the next request that is given to the server notes it; or a check that succeeds does.
 */
enum { EJECT_MS_MAX = 300000 };

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

#endif

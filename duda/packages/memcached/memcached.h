// SPDX-License-Identifier: Apache-2.0
/*
 * The structs of the package memcached.
 *
 *     service    struct mc_service, struct duda_memcached     what duda_main() has opened; constant then
 *     worker     struct mc_part ─► mc_pool ─► mc_server ─► mc_conn
 *     command    struct mc_command, in the list of its connection, then in part->done until it is delivered
 *
 *     mc_pool_submit ─► connection.commands ─► reply, failure, timeout ─► part.done ─► mc_deliver ─► callback, dthread
 *
 * Callbacks of the loop end with mc_deliver(), behind which the worker may have ended. All functions: in the worker's
 * thread.
 */
#ifndef DUDA_PACKAGES_MEMCACHED_PACKAGE_H
#define DUDA_PACKAGES_MEMCACHED_PACKAGE_H

#include "command.h"

#include <monkey/arena.h>
#include <monkey/dial.h>
#include <monkey/loop.h>

#include <stdatomic.h>

enum { MC_CACHES_MAX = 16, MC_CONNECTIONS_MAX = 16, MC_REASON_BYTES = 160, MC_ERROR_BYTES = 512 };

/* ── services ── */

/* Each may be NULL. */
struct mc_counters {
    const struct mk_counter *commands, *hits, *misses, *errors, *connections;
};

struct mc_service {
    atomic_bool started; /* in a worker: duda_main() is over */
    struct duda_memcached *first;
    unsigned n;
    struct mc_counters counters;
};

struct mc_target {
    const struct mk_dial_target *dial;
    uint64_t hash;
};

struct duda_memcached {
    struct duda_memcached *next;
    struct mc_service *service;
    unsigned index; /* in the service */
    struct duda_memcached_conf conf;
    struct mk_arena arena;
    unsigned n;
    struct mc_target targets[DUDA_MEMCACHED_SERVERS_MAX];
};

/* ── workers ── */

enum mc_state { MC_CLOSED, MC_DIALING, MC_OPEN };

struct mc_conn {
    struct mc_server *server;
    enum mc_state state;
    struct mk_dial dial;
    struct mk_event event;
    bool waits_for_write;
    bool has_replied;        /* since it was opened */
    struct mk_list dirty;    /* in pool.dirty: it has bytes to send */
    struct mk_list commands; /* without a reply, the oldest first */
    unsigned n_commands;
    uint64_t received_ms;
    uint64_t retry_ms; /* others are preferred until then, which work */
    size_t skip;       /* bytes of a value that is too long, still to be received */
    size_t out_sent;   /* bytes at the beginning of `out` that were sent */
    struct mk_buf out, in;
};

struct mc_server {
    struct mc_pool *pool;
    const struct mc_target *target;
    uint32_t backoff_ms;
    uint64_t down_until_ms; /* 0: it is not down */
    bool is_logged;         /* the log says that it has failed */
    enum { MC_NO_NEWS, MC_FAILED, MC_BACK } news;
    int err; /* of the last failure, and a clause */
    char reason[MC_REASON_BYTES];
    unsigned n_conns;
    struct mc_conn *conns[MC_CONNECTIONS_MAX];
};

struct mc_pool {
    struct mc_part *part;
    const struct duda_memcached *cache;
    unsigned pending;
    struct mk_list dirty;
    struct mk_task flush;
    char error[MC_ERROR_BYTES]; /* of the last call or callback */
    struct mc_server *servers;  /* one for each target */
};

struct mc_part {
    struct duda_package_worker *base;
    struct mc_service *service;
    struct mk_list done; /* commands to be delivered */
    bool has_news;       /* of a server, for the log */
    bool is_stopping;
    struct mc_server *servers; /* of all pools */
    uint32_t last_opaque;
    uint64_t misuse_ms; /* when a mistake was logged last; 0: never */
    unsigned n_pools;
    struct mc_pool pools[];
};

/* ── commands ── */

/* A dthread that waits for commands; on its stack. */
struct mc_wait {
    uint64_t dthread;
    unsigned left; /* commands without a result */
};

/* Tells that a request has ended; in memory that its gc frees. */
struct mc_watch {
    struct mc_command *command; /* NULL: was delivered */
};

struct mc_command {
    struct mk_list node; /* in conn.commands or part.done */
    struct mc_pool *pool;
    struct mc_server *server;
    struct mc_conn *conn; /* NULL: it has a result */
    unsigned op;
    uint32_t opaque;
    uint64_t sent_ms;
    struct mk_timer timer;
    struct mc_wait *wait; /* or */
    duda_memcached_fn fn; /* both NULL: the reply is dropped */
    void *data;
    duda_request_t *dr; /* of fn; NULL: none, or it has ended */
    struct mc_watch *watch;
    char *text;         /* what the server says about an error, or NULL */
    bool has_lost_conn; /* its error is server->reason */
    struct duda_memcached_reply reply;
};

extern struct duda_package mc_package;

/* ── memcached.c ── */

/* Logs a mistake, at most one in 10 seconds; `reason` is a clause. Returns `err`. */
int mc_refuse(struct mc_part *part, const char *call, int err, const char *reason);
/* Makes servers known to the service (<duda/packages/memcached/memcached.h>). */
duda_memcached_t *mc_open(const struct duda_memcached_conf *conf);
/* Adds to a counter of the service. */
void mc_count(struct mc_part *part, const struct mk_counter *counter, int64_t n);

/* ── pool.c ── */

void mc_pool_init(struct mc_pool *pool, struct mc_part *part, const struct duda_memcached *cache,
                  struct mc_server *servers);
/* Closes all connections; commands get -ECANCELED. */
void mc_pool_stop(struct mc_pool *pool);
/*
 * Sends a command. Returns it in `*ret` and 0; or an error, with a sentence in pool->error. `*ret` then has `wait` or
 * `fn` to be set, or is dropped with mc_command_abandon(): the result never comes before the caller returns.
 */
int mc_pool_submit(struct mc_pool *pool, const struct duda_memcached_command *command, struct mc_command **ret);
/* Drops the reply of a command, which is freed now or when it comes. */
void mc_command_abandon(struct mc_command *c);
/* Ends a command: it is delivered later, or freed. */
void mc_command_finish(struct mc_command *c, int result);
void mc_command_free(struct mc_command *c);
/* Writes the sentence about a result, if it is an error, to pool->error. */
void mc_command_explain(const struct mc_command *c);
/* Delivers what is done. The worker may have ended when it returns. */
void mc_deliver(struct mc_part *part);

/* ── conn.c ── */

struct mc_conn *mc_conn_new(struct mc_server *server);
/* Opens a connection, unless it is open. */
void mc_conn_open(struct mc_conn *conn);
/* Has what is in conn->out sent at the end of this turn. */
void mc_conn_schedule(struct mc_conn *conn);
/* Closes a connection after an error; all commands on it fail. `reason`: a clause about the server. */
void mc_conn_fail(struct mc_conn *conn, int err, const char *reason);
/* Closes and frees it. Commands get -ECANCELED. `has_loop`: what it has in the loop is removed. */
void mc_conn_free(struct mc_conn *conn, bool has_loop);
/* The callback of pool.flush. */
void mc_conn_flush_all(struct mk_task *task);

/* ── calls.c ── */

extern const struct duda_api_memcached mc_calls;

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * The structs of the package memcached.
 *
 *     service    struct mc_service, struct duda_memcached     what duda_main() has opened; constant then
 *     worker     struct mc_worker ─► mc_pool ─► mc_server ─► mc_conn      (<monkey/kit/upstream.h>)
 *     command    struct mc_command, of its connection until its reply, and of its caller until the result is taken
 *
 * All functions: in the worker's thread, below package->call() or a callback of the service.
 */
#ifndef DUDA_PACKAGES_MEMCACHED_PACKAGE_H
#define DUDA_PACKAGES_MEMCACHED_PACKAGE_H

#include "protocol.h"

#include <monkey/base/arena.h>
#include <monkey/kit/upstream.h>

#include <stdatomic.h>

enum { MC_CACHES_MAX = 16, MC_CONNECTIONS_MAX = 16, MC_ERROR_BYTES = 512 };

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
    struct mk_upstream_options options;
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

struct mc_conn {
    struct mk_upstream_conn base;
    struct mc_server *server;
    size_t skip;      /* bytes of a value that is too long, still to be received */
    struct mk_buf in; /* the beginning of a reply */
};

struct mc_server {
    struct mk_upstream up;
    struct mc_pool *pool;
    const struct mc_target *target;
    unsigned n_conns;
    struct mc_conn *conns[MC_CONNECTIONS_MAX];
};

struct mc_pool {
    struct mc_worker *worker;
    const struct duda_memcached *cache;
    unsigned pending;           /* commands without a reply */
    char error[MC_ERROR_BYTES]; /* of the last call or callback */
    struct mc_server *servers;  /* one for each target */
};

struct mc_worker {
    struct duda_package_worker *base;
    struct mk_loop *loop; /* also when base->loop is NULL */
    struct mc_service *service;
    struct mk_upstream_pool upstreams;
    char *buffer;          /* of the upstreams */
    struct mk_buf scratch; /* the command that is written */
    bool is_stopping;
    struct mc_server *servers; /* of all pools */
    uint32_t last_opaque;
    uint64_t api_error_ms; /* when a mistake was logged last; 0: never */
    unsigned n_pools;
    struct mc_pool pools[];
};

/* ── commands ── */

/* A dthread that waits for commands; on its stack. */
struct mc_wait {
    struct duda_package_wait base;
    unsigned left; /* commands without a result */
};

/* Tells that a request has ended; in memory that its gc frees. */
struct mc_watch {
    struct mc_command *command; /* NULL: was delivered */
};

struct mc_command {
    struct mk_upstream_call base;
    struct mc_server *server;
    unsigned op;
    uint32_t opaque;
    unsigned refs;        /* of the connection, and of the caller */
    struct mc_wait *wait; /* or */
    duda_memcached_fn fn; /* both NULL: the reply is dropped */
    void *data;
    duda_request_t *dr; /* of fn; NULL: none, or it has ended */
    struct mc_watch *watch;
    char *text; /* of an error: a sentence, or NULL */
    struct duda_memcached_reply reply;
    char bytes[];
};

extern struct duda_package mc_package;

/* ── memcached.c ── */

/* Logs a mistake, at most one in 10 seconds; `reason` is a clause. Returns `err`. */
int mc_refuse(struct mc_worker *w, const char *call, int err, const char *reason);
/* Makes servers known to the service (<duda/packages/memcached/memcached.h>). */
duda_memcached_t *mc_open(const struct duda_memcached_conf *conf);
/* Adds 1 to a counter of the service. */
void mc_count(struct mc_worker *w, const struct mk_counter *counter);

/* ── pool.c ── */

void mc_pool_init(struct mc_pool *pool, struct mc_worker *w, const struct duda_memcached *cache,
                  struct mc_server *servers);
/* Closes all connections; commands get -ECANCELED. `has_loop`: as mk_upstream_stop() has it. */
void mc_pool_stop(struct mc_pool *pool, bool has_loop);
/*
 * Sends a command. Returns it in `*ret` and 0; or an error, with a sentence in pool->error. `*ret` then has `wait` or
 * `fn` to be set, or is dropped with mc_command_abandon(): the result never comes before the caller returns.
 */
int mc_pool_submit(struct mc_pool *pool, const struct duda_memcached_command *command, struct mc_command **ret);
/* Drops the result of a command. */
void mc_command_abandon(struct mc_command *c);
/* Frees a command that neither its connection nor its caller has any more. */
void mc_command_put(struct mc_command *c);
/* Tells the caller a result, with a clause about the server for an error; NULL: what errno says. */
void mc_command_finish(struct mc_command *c, int result, const char *clause);
/* Writes the sentence about a result, if it is an error, to pool->error. */
void mc_command_explain(const struct mc_command *c);
/* Makes the first command of a connection. Returns NULL without memory. */
struct mc_command *mc_command_new_noop(struct mc_server *server);

/* ── conn.c ── */

extern const struct mk_upstream_protocol mc_protocol;
/* Returns what an error of a connection is to a caller (<duda/packages/memcached/memcached.h>). */
int mc_to_error(int err);

/* ── calls.c ── */

extern const struct duda_api_memcached mc_calls;

#endif

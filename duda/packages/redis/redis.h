// SPDX-License-Identifier: Apache-2.0
/*
 * The structs of the package redis.
 *
 *     service    struct redis_service    the servers of open(), with their subscriptions
 *     worker     struct redis_worker     a struct redis_client for each server that is used, the contexts of old.c
 *     server     struct redis_client     a connection for commands, and one for messages
 */
#ifndef DUDA_PACKAGES_REDIS_PACKAGE_H
#define DUDA_PACKAGES_REDIS_PACKAGE_H

#include "reader.h"

#include <duda/packages/redis/redis.h>
#include <monkey/base/arena.h>
#include <monkey/kit/upstream.h>

#include <stdatomic.h>

enum { REDIS_SERVERS_MAX = 16, REDIS_DIGEST_BYTES = 41 };

/* ── a connection ── */

enum { REDIS_TEXT_BYTES = MK_UPSTREAM_TEXT_BYTES };

struct redis_conn;
struct redis_worker;

/* What has become of a command. */
struct redis_result {
    int err;               /* 0, or as <duda/packages/redis/redis.h> has them */
    redisReply *reply;     /* 0: taken by done(); else NULL */
    const char *text;      /* of an error: a sentence, valid until done() returns */
    redisReply *refusal;   /* the error reply of the server, valid as long; or NULL */
    struct mk_str command; /* its bytes, valid as long */
    bool has_ended;        /* the service has, in this worker: dthreads that still waited were abandoned */
};

typedef void (*redis_done_fn)(void *owner, const struct redis_result *result);

/* A command, or several that are sent as one. */
struct redis_call {
    struct mk_upstream_call base;
    redis_done_fn done; /* NULL: the reply is dropped */
    void *owner;
    unsigned replies;    /* that are still to come; 0 from the beginning: none is matched */
    redisReply *refusal; /* of a transaction: the first error before the last reply */
    size_t len;
    char bytes[];
};

/* What all connections to a server have in common. Constant. */
struct redis_server {
    struct mk_upstream_options options;
    const char *user, *password; /* or NULL */
    uint32_t db;
    size_t reply_bytes_max;
};

/* What a connection is for. */
struct redis_role {
    struct mk_upstream_protocol protocol; /* REDIS_PROTOCOL, and what it does differently */
    /* Takes a reply, and returns true; false: it is that of the first command. May be NULL. */
    bool (*on_reply)(struct redis_conn *conn, redisReply *reply);
};

struct redis_conn {
    struct mk_upstream up; /* this connection's own: another may work meanwhile */
    struct mk_upstream_conn base;
    struct redis_worker *worker;
    const struct redis_server *server;
    const struct redis_role *role;
    void *owner; /* of the role */
    struct redis_reader reader;
};

static inline struct redis_conn *redis_conn_of(struct mk_upstream_conn *base)
{
    return MK_CONTAINER_OF(base, struct redis_conn, base);
}

/* ── the package ── */

enum redis_count { REDIS_COMMANDS, REDIS_ERRORS, REDIS_RECONNECTS, REDIS_WAITING, REDIS_COUNTS };

struct redis_subscription {
    struct redis_subscription *next;
    const char *channel;
    unsigned flags;
    duda_redis_message_fn fn;
    void *data;
};

/* In the arena of the service. */
struct duda_redis {
    struct duda_redis *next;
    unsigned index;
    struct redis_server server;
    struct redis_subscription *subscriptions;
    struct duda_session_backend *backend; /* or NULL */
};

struct redis_service {
    atomic_bool started; /* in a worker: duda_main() is over */
    struct mk_arena arena;
    struct duda_redis *first;
    unsigned n;
    const struct mk_counter *counters[REDIS_COUNTS];
    char script_digests[2][REDIS_DIGEST_BYTES]; /* of sessions.c; "": not computed */
};

struct redis_client {
    struct redis_conn commands, messages;
    struct mk_timer ping;         /* of `messages`: the next look whether it lives */
    bool has_life;                /* something has come since the last one */
    char error[REDIS_TEXT_BYTES]; /* of the last call */
};

struct redis_worker {
    struct duda_package_worker *base;
    struct mk_loop *loop; /* also when base->loop is NULL */
    struct redis_service *service;
    struct redis_client *clients[REDIS_SERVERS_MAX]; /* NULL: not used yet */
    struct mk_list contexts;                         /* of the original API */
    unsigned n_contexts;
    uint64_t sessions_logged_ms; /* 0: never */
    struct mk_upstream_pool pool;
    char *buffer;                 /* of the pool; or NULL */
    int64_t counts[REDIS_COUNTS]; /* not added to the counters yet */
    struct mk_task counting;
    bool is_stopping;
};

extern struct duda_package redis_package;

/* ── redis.c ── */

/* Returns what this thread's worker has; NULL, which is logged if `call` is not NULL: no callback of one runs. */
struct redis_worker *redis_worker_find(const char *call);
/* Returns what a worker has of a server, or NULL without memory. */
struct redis_client *redis_worker_client(struct redis_worker *w, const struct duda_redis *db);
/* Adds to a counter, at the end of the turn. */
void redis_worker_count(struct redis_worker *w, enum redis_count which, int64_t n);
/* Returns the service whose duda_main() runs, or NULL, which is logged. */
struct redis_service *redis_service_find(const char *call);

/*
 * ── conn.c ──
 *
 * <monkey/kit/upstream.h> with the protocol of Redis. A connection logs in (AUTH, SELECT) first. In the worker's
 * thread, below package->call() or a callback of the service.
 */

#define REDIS_PROTOCOL \
    .handshake = redis_handshake, .feed = redis_feed, .done = redis_done, .free = redis_free, .on_close = redis_close

int redis_handshake(struct mk_upstream_conn *base);
void redis_feed(struct mk_upstream_conn *base, const char *bytes, size_t n);
void redis_done(struct mk_upstream_conn *base, struct mk_upstream_call *call, int err, const char *text);
void redis_free(struct mk_upstream_conn *base, struct mk_upstream_call *call);
void redis_close(struct mk_upstream_conn *base);

void redis_conn_init(struct redis_conn *conn, struct redis_worker *w, const struct redis_server *server,
                     const struct redis_role *role, void *owner);
/* Returns the options of a server with these limits. */
struct mk_upstream_options redis_options(uint32_t connect_timeout_ms, uint32_t timeout_ms, uint32_t pending_max);
/* Returns a call with room for `len` bytes, or NULL without memory. */
struct redis_call *redis_call_new(size_t len, redis_done_fn done, void *owner);
/*
 * Sends a command, which is freed in any case. Returns 0; or -EBUSY or the error of the connection, with a sentence in
 * conn->up.text, and then done() is not called.
 */
int redis_conn_send(struct redis_conn *conn, struct redis_call *call);
/* Sends bytes that have no reply to match. Returns 0 or a negative error. */
int redis_conn_push(struct redis_conn *conn, const struct duda_redis_arg *args, unsigned n);

/* ── calls.c ── */

/* The role of a connection for commands. */
extern const struct redis_role redis_commands_role;

int redis_ask(duda_redis_t *db, redisReply **ret, const char *format, ...);
int redis_ask_args(duda_redis_t *db, redisReply **ret, const struct duda_redis_arg *args, unsigned n);
int redis_ask_all(duda_redis_t *db, struct duda_redis_item *items, unsigned n, bool atomic);
int redis_send(duda_redis_t *db, duda_request_t *dr, duda_redis_fn fn, void *data, const char *format, ...);
int redis_send_args(duda_redis_t *db, duda_request_t *dr, duda_redis_fn fn, void *data,
                    const struct duda_redis_arg *args, unsigned n);
const char *redis_error(duda_redis_t *db);

/* ── subscribe.c ── */

int redis_subscribe(duda_redis_t *db, const char *channel, unsigned flags, duda_redis_message_fn fn, void *data);
/* Begins to receive messages in a worker. Returns 0 or -ENOMEM. */
int redis_subscribe_start(struct redis_worker *w);
/* The callback of redis_client.ping. */
void redis_subscribe_ping(struct mk_timer *timer);
/* The role of a connection for messages. */
extern const struct redis_role redis_messages_role;

/* ── sessions.c ── */

const struct duda_session_backend *redis_sessions(duda_redis_t *db);

/* ── old.c ── */

redisAsyncContext *redis_old_connect(const char *ip, int port, duda_request_t *dr);
int redis_old_attach(redisAsyncContext *ctx, duda_request_t *dr);
int redis_old_set_connect_callback(redisAsyncContext *ctx, redisConnectCallback *fn);
int redis_old_set_disconnect_callback(redisAsyncContext *ctx, redisDisconnectCallback *fn);
int redis_old_command(redisAsyncContext *ctx, redisCallbackFn *fn, void *data, const char *format, ...);
void redis_old_disconnect(redisAsyncContext *ctx);
void redis_old_free(redisAsyncContext *ctx);
duda_request_t *redis_old_get_request(const redisAsyncContext *ctx);
/* Ends the contexts of a worker. */
void redis_old_stop(struct redis_worker *w, bool has_loop);

#endif

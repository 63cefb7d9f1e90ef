// SPDX-License-Identifier: Apache-2.0
/*
 * A connection to a Redis server, in a worker's loop: <monkey/upstream.h> with the protocol of Redis. It logs in (AUTH,
 * SELECT) first. All functions: in the worker's thread, below package->call() or a callback of the service.
 */
#ifndef DUDA_PACKAGES_REDIS_CONN_H
#define DUDA_PACKAGES_REDIS_CONN_H

#include "reader.h"

#include <duda/packages/redis/redis.h>
#include <monkey/upstream.h>

enum { REDIS_TEXT_BYTES = MK_UPSTREAM_TEXT_BYTES };

struct redis_conn;
struct redis_worker;

/* What has become of a command. */
struct redis_result {
    int err;               /* 0, or as redis.h has them */
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

#define REDIS_PROTOCOL \
    .handshake = redis_handshake, .feed = redis_feed, .done = redis_done, .free = redis_free, .on_close = redis_close

int redis_handshake(struct mk_upstream_conn *base);
void redis_feed(struct mk_upstream_conn *base, const char *bytes, size_t n);
void redis_done(struct mk_upstream_conn *base, struct mk_upstream_call *call, int err, const char *text);
void redis_free(struct mk_upstream_conn *base, struct mk_upstream_call *call);
void redis_close(struct mk_upstream_conn *base);

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
#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * A connection to a Redis server, in a worker's loop: dials, logs in, sends commands, matches replies, and connects
 * again.
 *
 *     IDLE ─► DIALING ─► GREETING (AUTH, SELECT) ─► READY
 *      ▲         │            │                       │
 *      └──── BACKOFF ◄────────┴── refused, lost ◄─────┘        until a command waits and the delay is over
 *
 *     redis_conn_send ─► waiting ─► (written) ─► sent ─► the reply: done() ─► freed
 *                           └──── the deadline: done(-ETIMEDOUT); one that was sent stays, for its late reply
 *
 * Replies come in the order of the commands. All functions: in the worker's thread, below package->call() or a callback
 * of the service, so that the worker does not end meanwhile.
 */
#ifndef DUDA_PACKAGES_REDIS_CONN_H
#define DUDA_PACKAGES_REDIS_CONN_H

#include "reader.h"

#include <duda/packages/redis/redis.h>
#include <monkey/dial.h>
#include <monkey/list.h>
#include <monkey/str.h>

struct redis_conn;
struct redis_part;

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
    struct mk_list node;    /* in a list of its connection */
    struct mk_list by_time; /* in conn.pending; in no list: done() was called */
    uint64_t deadline_ms;
    redis_done_fn done; /* NULL: the reply is dropped */
    void *owner;
    unsigned replies;    /* that are still to come; 0 from the beginning: none is matched */
    bool is_sent;        /* the server may have some of it */
    bool is_counted;     /* in conn.bytes */
    redisReply *refusal; /* of a transaction: the first error before the last reply */
    size_t len;
    char bytes[];
};

/* What all connections to a server have in common. Constant. */
struct redis_server {
    const struct mk_dial_target *target;
    const char *user, *password; /* or NULL */
    uint32_t db, connect_timeout_ms, timeout_ms, pending_max;
    size_t reply_bytes_max;
};

/* What a connection does differently; each function may be NULL. */
struct redis_role {
    bool is_lasting; /* it connects also if no command waits */
    bool is_single;  /* it does not connect again: on_down() ends it */
    void (*on_ready)(struct redis_conn *conn);
    /* Takes a reply, and returns true; false: it is that of the first command. */
    bool (*on_reply)(struct redis_conn *conn, redisReply *reply);
    void (*on_down)(struct redis_conn *conn);  /* is_single; see conn->err */
    void (*on_timer)(struct redis_conn *conn); /* of conn->retry in the state READY */
};

enum redis_state { REDIS_IDLE, REDIS_DIALING, REDIS_GREETING, REDIS_READY, REDIS_BACKOFF };

enum { REDIS_TEXT_BYTES = 256 };

struct redis_conn {
    struct redis_part *part;
    const struct redis_server *server;
    const struct redis_role *role;
    void *owner; /* of the role */
    enum redis_state state;
    struct mk_dial dial;
    struct mk_event event; /* fd < 0: not connected */
    uint32_t events;
    uint64_t serial; /* of the connection: a change tells that it was lost */
    struct redis_reader reader;
    struct mk_list greeting, waiting, sent; /* of calls, by `node` */
    struct mk_list pending;                 /* all without a result, by their deadlines */
    unsigned n_calls;
    size_t bytes;   /* of calls that were not written */
    size_t written; /* of the first one that is not written whole */
    unsigned greetings;
    bool has_replied; /* since it is connected */
    bool is_timer_armed;
    unsigned timeouts;  /* since the last reply */
    unsigned failures;  /* since the last reply */
    uint64_t failed_ms; /* the time of the first of them; 0: none */
    bool is_logged;     /* the log says that it has failed */
    uint64_t logged_ms; /* when it said so last; 0: never */
    int err;            /* of the last failure, and a sentence */
    char text[REDIS_TEXT_BYTES];
    struct mk_timer timer; /* the first deadline */
    struct mk_timer retry;
    struct mk_task flush;
};

void redis_conn_init(struct redis_conn *conn, struct redis_part *part, const struct redis_server *server,
                     const struct redis_role *role, void *owner);
/*
 * Closes it, and tells all calls -ECANCELED. `has_loop` is false if the thread has ended: its loop is closed then, but
 * still in memory.
 */
void redis_conn_stop(struct redis_conn *conn, bool has_loop);
/* Begins to connect, if it is IDLE. */
void redis_conn_open(struct redis_conn *conn);

/* Returns a call with room for `len` bytes, or NULL without memory. */
struct redis_call *redis_call_new(size_t len, redis_done_fn done, void *owner);
/*
 * Sends a command, which is freed in any case. Returns 0; or -EBUSY or the error of the connection, with a sentence in
 * conn->text, and then done() is not called.
 */
int redis_conn_send(struct redis_conn *conn, struct redis_call *call);
/* Sends bytes that have no reply to match. Returns 0 or -ENOMEM. */
int redis_conn_push(struct redis_conn *conn, const struct duda_redis_arg *args, unsigned n);
/* Ends the connection with an error and a clause, as if it was lost. */
void redis_conn_fail(struct redis_conn *conn, int err, const char *text);

#endif

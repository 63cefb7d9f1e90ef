// SPDX-License-Identifier: Apache-2.0
/*
 * Connections to another server on which calls are pipelined: many are under way, and their replies come in the order
 * of the calls. Dials, does the handshake of the protocol, sends, ends what takes too long, and dials again, with
 * growing delays, while the server fails. Commands and replies are the business of a protocol, which is a table of
 * functions.
 *
 *     CLOSED ─► DIALING ─► GREETING (the protocol's first calls) ─► READY
 *      ▲           │           │                                     │
 *      └─ BACKOFF ◄┴───────────┴───── refused, lost, silent ◄────────┘     until a call waits and the delay is over
 *
 *     mk_upstream_send ─► waiting ─► (written) ─► sent ─► feed(): mk_upstream_take
 *                            └──── failed, too late: done(); one that was sent stays for its late reply
 *
 * All functions must be called in the thread of the loop, and callbacks come in that thread, below the function `enter`
 * of the pool. A callback may send further calls, and fail connections.
 *
 * In the kit: plugins link -lmonkey-kit.
 */
#ifndef MONKEY_UPSTREAM_H
#define MONKEY_UPSTREAM_H

#include "../base/dial.h"
#include "../base/list.h"
#include "../base/str.h"
#include "../loop.h"

MK_C_BEGIN

enum { MK_UPSTREAM_TEXT_BYTES = 256, MK_UPSTREAM_READ_BYTES = 65536 };

struct mk_upstream_conn;

/* What the servers of a loop share. */
struct mk_upstream_pool {
    struct mk_loop *loop;
    /* Calls fn(data), and may end the owner of the connections after it; NULL: fn(data) is called as it is. */
    void (*enter)(struct mk_upstream_pool *pool, void (*fn)(void *data), void *data);
    /* A server has failed, or replies again. `text`: a sentence. */
    void (*log)(struct mk_upstream_pool *pool, bool has_failed, const char *text);
    char *buffer; /* of MK_UPSTREAM_READ_BYTES: what was read last */
    uint64_t random;
};

/* How to talk to a server. Constant as long as it is used. */
struct mk_upstream_options {
    const char *name; /* of the protocol, for sentences: "Redis" */
    const struct mk_dial_target *target;
    uint32_t connect_timeout_ms;
    uint32_t timeout_ms;   /* of a call, from mk_upstream_send() to its reply */
    unsigned timeouts_max; /* in a row, before the connection is closed */
    bool closes_late;      /* those count only if nothing was received since the call was sent; and a reply that takes
                              twice as long closes it */
    uint32_t wait_timeout_ms; /* a server may fail for so long before calls fail instead of waiting for it */
    bool fails_while_dialing; /* then also calls that come while it is dialed again */
    bool redials_at_once;     /* after a connection that has worked was lost: the server may be reachable again */
    uint32_t pending_max;     /* calls of a connection without a reply */
    size_t queue_bytes_max;   /* of these calls */
};

/* A server, as the connections of one loop know it. */
struct mk_upstream {
    struct mk_upstream_pool *pool;
    const struct mk_upstream_options *options;
    unsigned n_ready;       /* connections that are READY */
    unsigned failures;      /* since the last reply */
    uint64_t failed_ms;     /* the time of the first of them; 0: none */
    uint64_t down_until_ms; /* it is not dialed before */
    bool is_logged;         /* the log says that it has failed */
    uint64_t logged_ms;     /* when it said so last; 0: never */
    int err;                /* of the last failure, and a sentence */
    char text[MK_UPSTREAM_TEXT_BYTES];
};

/* A command, or several that are sent as one; in a struct of the protocol. */
struct mk_upstream_call {
    struct mk_list node;    /* in a list of its connection */
    struct mk_list by_time; /* in conn.pending */
    uint64_t since_ms, deadline_ms;
    struct mk_str bytes; /* they must stay until `free` */
    bool has_reply;      /* false: it is over when it is written */
    bool is_sent;        /* the server may have some of it */
    bool has_result;     /* done() was called: a late reply is dropped */
    bool is_counted;     /* in conn.queue_bytes */
};

/* A protocol; the functions without "may be NULL" are required. */
struct mk_upstream_protocol {
    /* Sends the calls that come first, by mk_upstream_handshake(). Returns 0 or a negative error. May be NULL. */
    int (*handshake)(struct mk_upstream_conn *conn);
    /*
     * Takes up to MK_UPSTREAM_READ_BYTES received bytes, which may contain pieces of replies: for each whole one
     * mk_upstream_take(), or mk_upstream_fail() if it makes no sense. Returns after mk_upstream_fail(): conn->serial
     * has changed then.
     */
    void (*feed)(struct mk_upstream_conn *conn, const char *bytes, size_t n);
    /*
     * A call that has a reply has failed; `text` is a sentence, valid until it returns. `free` follows, now or with a
     * late reply.
     */
    void (*done)(struct mk_upstream_conn *conn, struct mk_upstream_call *call, int err, const char *text);
    void (*free)(struct mk_upstream_conn *conn, struct mk_upstream_call *call);
    /* The connection is READY. May be NULL. */
    void (*on_ready)(struct mk_upstream_conn *conn);
    /* It was closed: pieces of replies are void. May be NULL. */
    void (*on_close)(struct mk_upstream_conn *conn);
    /* It has failed, and all calls know. May be NULL. */
    void (*on_failed)(struct mk_upstream_conn *conn);
    bool is_lasting; /* it is dialed also if no call waits */
    bool is_single;  /* it is not dialed again after it has failed, and its owner sends no more */
};

enum mk_upstream_state {
    MK_UPSTREAM_CLOSED,
    MK_UPSTREAM_BACKOFF,
    MK_UPSTREAM_DIALING,
    MK_UPSTREAM_HANDSHAKE,
    MK_UPSTREAM_READY
};

struct mk_upstream_conn {
    struct mk_upstream *server;
    const struct mk_upstream_protocol *protocol;
    enum mk_upstream_state state;
    struct mk_dial dial;
    struct mk_event event; /* fd < 0: not connected */
    uint32_t events;
    uint64_t serial;                               /* changes when it is closed */
    struct mk_list handshake_calls, waiting, sent; /* of calls, by `node` */
    struct mk_list pending;                        /* those with a deadline, the first one first */
    unsigned n_calls;                              /* without a reply */
    unsigned n_handshake_calls;
    size_t queue_bytes; /* of calls that it has */
    size_t written;     /* of the first one that is not written whole */
    bool has_replied;   /* since it is READY */
    bool is_timer_armed;
    unsigned timeouts;     /* since the last reply */
    uint64_t received_ms;  /* when bytes came last; 0: never */
    uint64_t retry_ms;     /* it has failed while others work: they are preferred until then */
    struct mk_timer timer; /* the first deadline */
    struct mk_timer retry; /* the end of BACKOFF */
    struct mk_task flush;
};

/* ── pools and servers ── */

/* Prepares a pool; its functions are the caller's to set. The buffer must stay until all connections are stopped. */
void mk_upstream_pool_init(struct mk_upstream_pool *pool, struct mk_loop *loop, char *buffer);
void mk_upstream_init(struct mk_upstream *server, struct mk_upstream_pool *pool,
                      const struct mk_upstream_options *options);

/* ── connections ── */

void mk_upstream_conn_init(struct mk_upstream_conn *conn, struct mk_upstream *server,
                           const struct mk_upstream_protocol *protocol);
/*
 * Closes it, and fails all calls with -ECANCELED; done() must not send again. `has_loop` is false if the thread has
 * ended: its loop is closed then, but still in memory. Not below `enter`.
 */
void mk_upstream_stop(struct mk_upstream_conn *conn, bool has_loop);
/* Begins to connect, if it is CLOSED. */
void mk_upstream_connect(struct mk_upstream_conn *conn);
/*
 * Fails the connection, as if it was lost: calls that were sent fail, and all with `fails_waiting`. `text`: a clause
 * about the server.
 */
void mk_upstream_fail(struct mk_upstream_conn *conn, int err, const char *text, bool fails_waiting);

/* ── calls ── */

/* Prepares a call that is zeroed. */
void mk_upstream_call_init(struct mk_upstream_call *call, struct mk_str bytes);
/*
 * Sends a call. Returns 0: the connection has it, and done() never comes before the caller has returned to the loop; or
 * -EBUSY or the error of the server, with a sentence in server->text: the call is the caller's.
 */
int mk_upstream_send(struct mk_upstream_conn *conn, struct mk_upstream_call *call);
/* Sends one of the first calls, within handshake(). */
void mk_upstream_handshake(struct mk_upstream_conn *conn, struct mk_upstream_call *call);
/* Counts a reply to one of the first calls; after the last one the connection is READY. */
void mk_upstream_accept(struct mk_upstream_conn *conn);
/* Notes a valid reply: the server works. */
void mk_upstream_note_reply(struct mk_upstream_conn *conn);
/* Returns the oldest call that was sent, or NULL. */
struct mk_upstream_call *mk_upstream_first(const struct mk_upstream_conn *conn);
/* Removes it from the connection: its reply is whole, and the call is the protocol's. */
void mk_upstream_take(struct mk_upstream_conn *conn, struct mk_upstream_call *call);

MK_C_END

#endif

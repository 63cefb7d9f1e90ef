// SPDX-License-Identifier: Apache-2.0
/*
 * A client's connection, with any protocol. A state says what the connection waits for between two turns: the events
 * that start a turn, the timeout, and the states that may follow (the table in conn.c, checked by a unit test).
 *
 *     HANDSHAKE ─► NEW ─► READ_HEAD ─► READ_BODY ─► HANDLER ─► DISK ─► WRITE ─► IDLE ─► READ_HEAD ...
 *                └────────┴───────┴────────┴─────────┴───────┴──────► LINGER ─► CLOSED
 *
 * Once it speaks HTTP/2 it is in IDLE, READ_HEAD, STREAMS (as long as there are any) or H2_WRITE. What a turn does is
 * up to the protocol (struct mk__proto); h1/ and h2/ implement one each, and conn.c names neither.
 */
#ifndef MK_HTTP_CONN_H
#define MK_HTTP_CONN_H

#include "http/context.h"
#include "http/request.h"

#include <netinet/in.h>

enum mk__conn_state {
    MK__CONN_CLOSED,
    MK__CONN_HANDSHAKE, /* the transport's handshake is not complete */
    MK__CONN_NEW,       /* accepted; nothing of a request has been read */
    MK__CONN_IDLE,      /* between two requests */
    MK__CONN_READ_HEAD, /* a part of a request head has been read */
    MK__CONN_READ_BODY, /* waits for more of a request body */
    MK__CONN_HANDLER,   /* waits for a handler: for its response, or because it has paused the body */
    MK__CONN_DISK,      /* a thread of the pool reads a file for the response */
    MK__CONN_WRITE,     /* the socket is full, or the turn has yielded to other connections */
    MK__CONN_TUNNEL,    /* a handler has taken the connection over */
    MK__CONN_STREAMS,   /* HTTP/2: streams are open, each with its own timeout */
    MK__CONN_H2_WRITE,  /* HTTP/2: the socket is full */
    MK__CONN_LINGER,    /* our FIN is sent; input is discarded, so that no reset destroys the response */
    MK__CONN_STATES,
};

enum { MK__CONN_WANT_READ = 1, MK__CONN_WANT_WRITE = 2 };

/* When room is needed, connections of the lowest number are closed first. */
enum mk__conn_evict { MK__CONN_EVICT_NEVER, MK__CONN_EVICT_FIRST, MK__CONN_EVICT_LAST };

struct mk__conn_state_info {
    const char *name;
    uint8_t want;            /* which edge goes on */
    uint8_t timeout;         /* enum mk__timeout */
    bool restarts;           /* the timeout starts again whenever bytes have moved */
    uint8_t evict;           /* enum mk__conn_evict */
    uint16_t timeout_status; /* the status for the client that it has passed; 0: the connection just ends */
    uint16_t next;           /* a bit for each state that may follow */
};

extern const struct mk__conn_state_info mk__conn_states[MK__CONN_STATES];

/* Grace period after a drain begins for connections without a request: one may be in flight. */
enum { MK__CONN_DRAIN_GRACE_MS = 1000 };

struct mk__conn;

/* A protocol, as a connection sees it. */
struct mk__proto {
    /*
     * Whether it tells clients of new settings and of a shutdown (GOAWAY): each connection gets a turn then. Other
     * protocols tell with the next response.
     */
    bool announces_changes;
    /* The first turn of a connection that switches to this protocol; `in` was read already. Returns the next state. */
    enum mk__conn_state (*begin)(struct mk__conn *c, struct mk_str in);
    /* A turn: does all that can be done without waiting. Returns the next state. */
    enum mk__conn_state (*on_ready)(struct mk__conn *c);
    /* The timeout of the state has passed. Returns the next state. */
    enum mk__conn_state (*on_timeout)(struct mk__conn *c);
    /* The connection closes: ends its exchanges and frees c->proto_data. May be called after it has done so. */
    void (*close)(struct mk__conn *c);
    /* Returns the connection that should go first when room is needed, or NULL. The function may be NULL. */
    struct mk__conn *(*evict)(const struct mk__context *http);
    /* While memory is low: gives up to `n` idle connections a turn, in which they end. May be NULL. */
    void (*close_idle)(struct mk__context *http, unsigned n);
    /* The settings have changed: logs how many connections and streams were ended so far. May be NULL. */
    void (*log_totals)(const struct mk__context *http);
    /* Frees what all connections of the thread have shared. May be NULL. */
    void (*release)(struct mk__context *http);
};

struct mk__conn {
    struct mk_event event;
    struct mk__sock sock;
    struct mk_timer timer;
    struct mk_task task;
    struct mk_list link; /* in http->conns */
    struct mk__context *http;
    const struct mk__proto *proto;
    void *proto_data;         /* of the protocol; NULL: none */
    struct mk_request *req;   /* the current exchange of HTTP/1; NULL: none */
    uint32_t discarded_bytes; /* input read in LINGER */
    uint32_t requests;
    uint64_t armed_bytes;    /* count_moved_bytes() when the timer was armed */
    uint32_t armed_requests; /* `requests` when the timer was armed */
    struct mk__peer peer;
    struct mk_list handshaking; /* in http->handshaking, in the state HANDSHAKE */
    bool handshake_wants_write; /* the handshake waits until the socket is writable */
    uint64_t stream_bytes;      /* body bytes of HTTP/2 streams, passed to `sock` */
    uint64_t id;                /* of mk_connection_id(); 0: not assigned yet */
    uint8_t state;
    bool registered;        /* with the loop */
    bool running;           /* a turn is in progress: wake() need not schedule one */
    bool closing;           /* close after the current response */
    bool client_will_close; /* the client asked for that, so it will not send another request */
    bool unread_input;      /* the client may still be sending input that will not be read */
    bool drain_notified;    /* the tunnel has been told about the drain */
    bool accepted_in_drain; /* accepted during a drain, which does not wait for it */
};

/* Tells whether the connection may switch to the second protocol. Loads it on first use; false if that fails. */
bool mk__conn_can_switch(struct mk__conn *c);
/* Continues with the second protocol; `in` is input that was read already. Returns the state to wait in. */
enum mk__conn_state mk__conn_switch_proto(struct mk__conn *c, struct mk_str in);
/*
 * Closes our side of the connection. Returns the state to wait in: CLOSED; LINGER, until the client has closed its
 * side; or WRITE, if the socket has no room for the end message of the transport: call again when it is writable.
 */
enum mk__conn_state mk__conn_begin_close(struct mk__conn *c);
/*
 * Discards input, so that the client can read the last response before it sees a reset. Returns LINGER, or CLOSED when
 * the client has closed its side, on an error, and after 64 MB.
 */
enum mk__conn_state mk__conn_linger(struct mk__conn *c);
/*
 * Serves an accepted connection; its first turn runs at once, so that it may be closed on return. Takes `io`: its
 * descriptor is closed in any case. `worker` is passed to the transport. Returns 0, -ENOMEM or the error of the
 * transport.
 */
int mk__conn_open(struct mk__context *http, const struct mk_io *io, struct mk_worker *worker);

/* After http->settings has changed: schedules a turn for each HTTP/2 connection, and logs the HTTP/2 totals. */
void mk__conn_apply_settings(struct mk__context *http);
/* Ends connections after their next response. Idle ones stay open until their timeout. */
void mk__conn_retire_all(struct mk__context *http);
/* Begins the drain: idle connections end now, the others after their current exchange. */
void mk__conn_drain_all(struct mk__context *http);
/* Tells whether all connections from before the drain are closed. Those accepted later serve one request each. */
bool mk__conn_all_drained(const struct mk__context *http);
/*
 * Makes room by closing up to `n` connections, the oldest first: those that are idle or linger; if there are none, the
 * HTTP/2 connection with the most stalled streams; else those that have not sent a complete head. Returns how many.
 */
unsigned mk__conn_close_idle(struct mk__context *http, unsigned n);
/* Closes all connections at once. */
void mk__conn_abort_all(struct mk__context *http);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * A client's connection, with any protocol. A state says what the connection waits for between two turns: the events
 * that start a turn, the timeout, and the states that may follow (the table in conn.c, checked by a unit test).
 *
 *     HANDSHAKE ─► NEW ─► READ_HEAD ─► READ_BODY ─► HANDLER ─► DISK ─► WRITE ─► IDLE ─► READ_HEAD ...
 *                └────────┴───────┴────────┴─────────┴───────┴──────► LINGER ─► CLOSED
 *
 * A protocol with many streams is in NEW, IDLE, READ_HEAD, STREAMS (as long as there are any) or STREAMS_WRITE. What a
 * turn does is up to the protocol (struct mk__proto); h1/ and h2/ implement one each, and conn.c names neither.
 */
#ifndef MK_HTTP_CONN_H
#define MK_HTTP_CONN_H

#include "http/client_addr.h"
#include "http/context.h"
#include "http/request.h"

#include <netinet/in.h>

enum mk__conn_state {
    MK__CONN_CLOSED,
    MK__CONN_HANDSHAKE,     /* the transport's handshake is not complete */
    MK__CONN_NEW,           /* accepted; no byte of a request has been read */
    MK__CONN_IDLE,          /* between two requests */
    MK__CONN_READ_HEAD,     /* a part of a request head has been read */
    MK__CONN_READ_BODY,     /* waits for more of a request body */
    MK__CONN_HANDLER,       /* waits for a handler: for its response, or to continue with the body */
    MK__CONN_DISK,          /* a thread of the pool reads a file for the response */
    MK__CONN_WRITE,         /* the socket is full, or the turn has yielded to other connections */
    MK__CONN_TUNNEL,        /* a handler has taken the connection over */
    MK__CONN_STREAMS,       /* streams are open, each with its own timeout */
    MK__CONN_STREAMS_WRITE, /* the protocol has streams, and the socket is full */
    MK__CONN_LINGER,        /* our FIN is sent; input is discarded, so that no reset destroys the response */
    MK__CONN_STATES,
};

enum { MK__CONN_WANT_READ = 1, MK__CONN_WANT_WRITE = 2 };

/* In which order connections are closed when room is needed. */
enum mk__conn_evict { MK__CONN_EVICT_NEVER, MK__CONN_EVICT_FIRST, MK__CONN_EVICT_LAST };

/* What a timeout does. */
enum mk__on_timeout {
    MK__ON_TIMEOUT_ABORT,   /* closes the connection at once, or resets the stream */
    MK__ON_TIMEOUT_CLOSE,   /* the protocol closes it, so that the client does not take it for an error */
    MK__ON_TIMEOUT_RESPOND, /* sends timeout_status; as ABORT, if a head was sent; HTTP/2 closes its connections */
};

/* What a turn of a connection does. */
enum mk__conn_turn {
    MK__CONN_TURN_PROTO,     /* it is up to the protocol */
    MK__CONN_TURN_HANDSHAKE, /* takes a step of the handshake */
    MK__CONN_TURN_LINGER,    /* discards input */
};

/* A state of a connection, or of an HTTP/2 stream (http/h2/timeout.c). */
struct mk__state_info {
    const char *name;
    uint8_t timeout;         /* enum mk__timeout; MK__TIMEOUTS: none */
    uint8_t on_timeout;      /* enum mk__on_timeout */
    uint16_t timeout_status; /* for RESPOND */
    bool notifies_handler;   /* on_handler_timeout() is called before the response */
    bool restarts;           /* the timeout starts again whenever bytes have moved */
    bool limits_rate;        /* the client must send its body at MinBodyRate */
    uint16_t next;           /* a bit for each state that may follow */
    /* of connections */
    uint8_t want;  /* the edge that is waited for */
    uint8_t turn;  /* enum mk__conn_turn */
    bool idle;     /* no request has begun: the connection may end */
    uint8_t evict; /* enum mk__conn_evict */
    /* of streams */
    bool can_stall;        /* waits for its client: counts when connections are closed to make room */
    bool waits_for_window; /* until the client takes more, of this stream or of the connection */
};

extern const struct mk__state_info mk__conn_states[MK__CONN_STATES];

/* Grace period after a drain begins for connections without a request: one may be in flight. */
enum { MK__CONN_DRAIN_GRACE_MS = 1000 };

/* Whether the connection ends after the current response, and what its client may still send. It only moves forward. */
enum mk__close {
    MK__CLOSE_NEVER,
    MK__CLOSE_AFTER_RESPONSE, /* the client may have sent another request already */
    MK__CLOSE_BY_CLIENT,      /* the client has asked for it, and sends nothing more */
    MK__CLOSE_UNREAD_INPUT,   /* the client may still be sending input that will not be read */
};

struct mk__conn;

/*
 * Shows the connections of a thread to what looks into the server (lib/inspect/). Is called between their steps, and
 * changes none of them.
 */
struct mk__inspector {
    void (*on_open)(struct mk__inspector *i, struct mk__conn *c); /* it is in http->conns */
    void (*on_state)(struct mk__inspector *i, const struct mk__conn *c, enum mk__conn_state next); /* if c->traced */
    void (*on_free)(struct mk__inspector *i, struct mk__conn *c); /* it leaves http->conns */
};

/* What the connections of a thread may be notified of. */
enum mk__conn_change { MK__CONN_CHANGE_SETTINGS, MK__CONN_CHANGE_SHUTDOWN };

/*
 * A protocol, as connections and their thread see it. What may be NULL says so; the functions of the second part are
 * called between the turns of connections, of each protocol that a connection has used.
 */
struct mk__proto {
    /*
     * The first turn of a connection that switches to this protocol; `in` was read already. Returns the next state.
     * NULL: connections only begin with it.
     */
    enum mk__conn_state (*begin)(struct mk__conn *c, struct mk_str in);
    /* A turn: does all that can be done without waiting. Returns the next state. */
    enum mk__conn_state (*on_ready)(struct mk__conn *c);
    /* The timeout of the state has passed, which does not abort the connection. Returns the next state. */
    enum mk__conn_state (*on_timeout)(struct mk__conn *c);
    /* A timeout aborts the connection: logs what ends with it. NULL: nothing. */
    void (*on_abort)(struct mk__conn *c);
    /* Tells whether a change is announced in a separate turn. Otherwise the next response tells it. */
    bool (*announces)(const struct mk__conn *c, enum mk__conn_change change);
    /* The connection closes: ends its exchanges and frees c->proto_data. May be called after it has done so. */
    void (*close)(struct mk__conn *c);

    /* Returns a connection that takes more than its share when room is needed, or NULL. NULL: there is none. */
    struct mk__conn *(*evict)(const struct mk__context *http);
    /* While memory is low: gives up to `n` idle connections a turn, in which they end. NULL: they use little. */
    void (*close_idle)(struct mk__context *http, unsigned n);
    /* The settings have changed: logs how many connections and streams were ended so far. NULL: nothing is counted. */
    void (*log_totals)(struct mk__context *http);
    /* Frees what all connections of the thread have shared. NULL: nothing. */
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
    struct mk_request *req;   /* the exchange that the state is about; NULL: none, or each stream has its own */
    uint32_t discarded_bytes; /* input read in LINGER */
    uint32_t requests;
    uint64_t armed_bytes;    /* count_moved_bytes() when the timer was armed */
    uint32_t armed_requests; /* `requests` when the timer was armed */
    uint32_t opened_tenths;  /* tenths of seconds of the loop's clock */
    struct mk_connection handle;
    struct mk_list handshaking; /* in http->handshaking, in the state HANDSHAKE */
    uint64_t stream_bytes;      /* body bytes of streams, passed to `sock` */
    uint8_t state;
    bool handshake_wants_write; /* the handshake waits until the socket is writable */
    bool registered;            /* with the loop */
    uint8_t close;              /* enum mk__close */
    bool running;               /* a turn is in progress: wake() need not schedule one */
    bool accepted_in_drain;     /* accepted during a drain, which does not wait for it */
    bool traced;                /* http->inspector is notified of its states */
    bool reported;              /* had no request, and the loop has reported bytes that were not read yet */
};

/* Returns the connection that plugins see as `handle`. */
static inline const struct mk__conn *mk__conn_of(const struct mk_connection *handle)
{
    return (const struct mk__conn *)(const void *)((const char *)handle - offsetof(struct mk__conn, handle));
}

static inline void mk__conn_close_after(struct mk__conn *c, enum mk__close close)
{
    if (c->close < close)
        c->close = (uint8_t)close;
}

/* Input was read that may have been sent during this turn: what plugins have looked at in it may be older. */
static inline void mk__conn_note_read(struct mk__conn *c)
{
    c->http->reads++;
}

/* Tells whether the connection has carried as many requests as it may. */
static inline bool mk__conn_is_used_up(const struct mk__conn *c)
{
    uint64_t most = c->http->settings->requests_max;
    return most && c->requests >= most;
}

/* Tells whether the connection was accepted during a drain, and may send the one request that it serves. */
static inline bool mk__conn_awaits_request_in_drain(const struct mk__conn *c)
{
    return c->accepted_in_drain && !c->requests;
}

/*
 * Tells whether `in`, the first bytes of the connection and not empty, begins another protocol that is enabled. Loads
 * it on first use; NONE if that fails.
 */
enum mk__preface mk__conn_check_preface(struct mk__conn *c, struct mk_str in);
/* Continues with the protocol whose whole preface `in` begins with. Returns the state to wait in. */
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
 * descriptor is closed in any case. `peer` is the address of the client.
 * `worker` is passed to the transport. Returns 0, -ENOMEM or the error of the transport.
 */
int mk__conn_open(struct mk__context *http, const struct mk_io *io, const struct mk_address *peer,
                  struct mk_worker *worker);

/* After http->settings has changed: schedules the turns that announce it, and logs the totals of the protocols. */
void mk__conn_apply_settings(struct mk__context *http);
/* Ends connections after their next response. Idle ones stay open until their timeout. */
void mk__conn_retire_all(struct mk__context *http);
/* Begins the drain: idle connections end now, the others after their current exchange. */
void mk__conn_drain_all(struct mk__context *http);
/* Tells whether all connections from before the drain are closed. Those accepted later serve one request each. */
bool mk__conn_all_drained(const struct mk__context *http);
/*
 * Makes room by closing up to `n` connections, the oldest first: those that are idle or linger; if there are none, the
 * one that a protocol chooses; else those that have not sent a complete head, but for the newest one until a tenth of a
 * second has passed. Returns how many.
 */
unsigned mk__conn_close_idle(struct mk__context *http, unsigned n);
/* While memory is low: lets up to `n` idle connections end that use much of it. */
void mk__conn_save_memory(struct mk__context *http, unsigned n);
/* Frees what the connections of each protocol have shared. There are no connections any more. */
void mk__conn_release_protos(struct mk__context *http);
/* Closes one connection at once. Returns 0, or -EBUSY in a turn of it. */
int mk__conn_abort(struct mk__conn *c);
/* Closes all connections at once. */
void mk__conn_abort_all(struct mk__context *http);

#endif

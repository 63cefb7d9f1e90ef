// SPDX-License-Identifier: Apache-2.0
/*
 * A client's connection, whatever protocol it speaks. Its states are the waits between two turns; each names what
 * it waits for, the limit of that wait, and where it may go (the table in conn.c, walked by a unit test):
 *
 *     HANDSHAKE ─► NEW ─► READ_HEAD ─► READ_BODY ─► HANDLER ─► DISK ─► WRITE ─► IDLE ─► READ_HEAD ...
 *                └────────┴───────┴────────┴─────────┴───────┴──────► LINGER ─► CLOSED
 *
 * Once it speaks HTTP/2 it is in IDLE, READ_HEAD, STREAMS (as long as there are any) or H2_WRITE. What a turn does is
 * the protocol's business (h1/h1.c, h2/session.c).
 */
#ifndef MK_HTTP_CONN_H
#define MK_HTTP_CONN_H

#include "http/context.h"
#include "http/request.h"

#include <netinet/in.h>

enum mk__conn_state {
    MK__CONN_CLOSED,
    MK__CONN_HANDSHAKE, /* its transport has something to settle first */
    MK__CONN_NEW,       /* accepted, nothing of a request read yet */
    MK__CONN_IDLE,      /* between two requests */
    MK__CONN_READ_HEAD, /* a part of a head is here */
    MK__CONN_READ_BODY, /* the rest of a body is awaited */
    MK__CONN_HANDLER,   /* a handler works on the answer, or has paused the body */
    MK__CONN_DISK,      /* a file's bytes are being read */
    MK__CONN_WRITE,     /* the client does not take its bytes fast enough, or others have their turn */
    MK__CONN_TUNNEL,    /* a handler has taken the connection over */
    MK__CONN_STREAMS,   /* streams are under way, each with a wait of its own */
    MK__CONN_H2_WRITE,  /* the client does not take what its streams have for it */
    MK__CONN_LINGER,    /* our FIN is out; read on so that no reset eats the answer */
    MK__CONN_STATES,
};

enum { MK__CONN_WANT_READ = 1, MK__CONN_WANT_WRITE = 2 };

struct mk__conn_state_info {
    const char *name;
    uint8_t want;            /* which edge goes on */
    uint8_t timeout;         /* enum mk__timeout */
    uint16_t timeout_status; /* the status for the client that it has passed; 0: the connection just ends */
    uint16_t next;           /* a bit for each state that may follow */
};

extern const struct mk__conn_state_info mk__conn_states[MK__CONN_STATES];

/* What a drain leaves to who has nothing under way, but may have something on the way. */
enum { MK__CONN_DRAIN_GRACE_MS = 1000 };

/* Unread input of a connection between two turns, right-sized. */
struct mk__h1_saved_input;

struct mk__conn {
    struct mk_event event;
    struct mk__sock sock;
    struct mk_timer timer;
    struct mk_task task;
    struct mk_list link; /* in http->conns */
    struct mk__context *http;
    struct mk_request *req;
    struct mk__h1_saved_input *saved_input;
    uint32_t discarded_bytes; /* bytes thrown away */
    uint32_t requests;
    uint64_t armed_bytes;    /* as of the last arming of the timer */
    uint32_t armed_requests; /* likewise */
    struct mk__peer peer;
    struct mk_list handshaking; /* in http->handshaking */
    struct mk__h2 *h2;          /* NULL: it speaks HTTP/1 */
    bool handshake_wants_write; /* its handshake waits for room */
    uint64_t stream_bytes;      /* bytes of the bodies of its streams that have left, or are held */
    uint64_t id;                /* 0: nobody has asked for it yet */
    uint8_t state;
    bool registered;        /* by the loop */
    bool running;           /* its turn is on: wake() needs to do nothing */
    bool closing;           /* after the current response */
    bool client_will_close; /* the client itself asked for that, and so sends nothing more */
    bool unread_input;      /* it is still sending what nobody will read */
    bool drain_notified;    /* the tunnel knows that we are draining */
    bool accepted_in_drain; /* came during a drain, which does not wait for it */
};

/* Is HTTP/2 spoken here? */
bool mk__conn_can_use_h2(struct mk__conn *c);
/* The client has begun with it: goes on with these bytes. The state to wait in. */
enum mk__conn_state mk__conn_switch_to_h2(struct mk__conn *c, struct mk_str in);
/*
 * Ends our side; the state to wait in until the client has ended its own. WRITE: the end cannot be sent yet, because
 * the client takes no more bytes; to be called again then.
 */
enum mk__conn_state mk__conn_begin_close(struct mk__conn *c);
/* Throws away what still comes, so that the client reads our last answer before it sees a reset. */
enum mk__conn_state mk__conn_linger(struct mk__conn *c);
/*
 * Serves a fresh connection from now on; its first turn comes at once. Takes `io` (its descriptor is closed
 * in any case); `worker` is for its transport. 0 or -ENOMEM ...
 */
int mk__conn_open(struct mk__context *http, const struct mk_io *io, struct mk_worker *worker);

/* The settings are others: connections that hold on to those of their beginning are told, totals logged. */
void mk__conn_apply_settings(struct mk__context *http);
/* Stops keeping connections, but ends none: idle ones have until their time is over. */
void mk__conn_retire_all(struct mk__context *http);
/* Stops keeping connections: idle ones end now, the others after their current exchange. */
void mk__conn_drain_all(struct mk__context *http);
/* Have all connections ended that were there when the drain began? Later ones have one request each meanwhile. */
bool mk__conn_all_drained(const struct mk__context *http);
/*
 * Ends up to `n` connections that can be missed, the oldest first, and says how many: those that are idle
 * or linger; or else one whose client lets many streams wait for it, the one with most of them; or else those that
 * have not brought a whole head yet.
 */
unsigned mk__conn_close_idle(struct mk__context *http, unsigned n);
/* Ends all connections at once. */
void mk__conn_abort_all(struct mk__context *http);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * A connection that speaks HTTP/1. Its states are the waits between two turns; each names what it waits
 * for, the limit of that wait, and where it may go (the table in h1.c, walked by a unit test):
 *
 *     FRESH ─► HEAD ─► BODY ─► HANDLER ─► DISK ─► SEND ─► IDLE ─► HEAD ...
 *       └────────┴───────┴────────┴─────────┴───────┴──────► LINGER ─► CLOSED
 *
 * One turn does all that can be done without waiting: it reads once, answers every request in what it
 * read, and writes once.
 */
#ifndef MK_HTTP_H1_H
#define MK_HTTP_H1_H

#include "http/http.h"
#include "http/request.h"

#include <netinet/in.h>

enum mk__h1_state {
    MK__H1_CLOSED,
    MK__H1_FRESH,   /* accepted, nothing of a request read yet */
    MK__H1_IDLE,    /* between two requests */
    MK__H1_HEAD,    /* a part of a head is here */
    MK__H1_BODY,    /* the rest of a body is awaited */
    MK__H1_HANDLER, /* a handler works on the answer, or has paused the body */
    MK__H1_DISK,    /* a file's bytes are being read */
    MK__H1_SEND,    /* the client does not take its bytes fast enough, or others have their turn */
    MK__H1_TUNNEL,  /* a handler has taken the connection over */
    MK__H1_LINGER,  /* our FIN is out; read on so that no reset eats the answer */
    MK__H1_STATES,
};

enum { MK__H1_WANT_READ = 1, MK__H1_WANT_WRITE = 2 };

struct mk__h1_wait {
    const char *name;
    uint8_t want;     /* which edge goes on */
    uint8_t limit;    /* enum mk__wait */
    uint16_t overdue; /* the status for the client that it has passed; 0: the connection just ends */
    uint16_t next;    /* a bit for each state that may follow */
};

extern const struct mk__h1_wait mk__h1_waits[MK__H1_STATES];

/* Unread input of a connection between two turns, right-sized. */
struct mk__h1_rest;

struct mk__h1 {
    struct mk_event event;
    struct mk__stream stream;
    struct mk_timer timer;
    struct mk_task task;
    struct mk_list link; /* in http->live */
    struct mk__http *http;
    struct mk_request *req;
    struct mk__h1_rest *rest;
    uint32_t lingered; /* bytes thrown away */
    uint32_t requests;
    uint64_t armed_bytes;    /* as of the last arming of the timer */
    uint32_t armed_requests; /* likewise */
#ifndef MK_LEAN
    struct mk__peer peer;
    uint64_t id; /* 0: nobody has asked for it yet */
#endif
    uint8_t state;
    bool watched;  /* by the loop */
    bool driving;  /* its turn is on: wake() needs to do nothing */
    bool closing;  /* after the current response */
    bool polite;   /* the client itself asked for that, and so sends nothing more */
    bool impolite; /* it is still sending what nobody will read */
    bool told;     /* the tunnel knows that we are draining */
    bool late;     /* came during a drain, which does not wait for it */
};

/* What stands in the way of more output. */
enum mk__h1_output {
    MK__OUTPUT_DONE,    /* the response is complete and handed over */
    MK__OUTPUT_WAITING, /* for the handler */
    MK__OUTPUT_BLOCKED, /* by the client */
    MK__OUTPUT_LATER,   /* others first */
    MK__OUTPUT_DISK,    /* a job was sent; it will wake the exchange */
    MK__OUTPUT_TUNNEL,  /* the head has left, the rest is the handler's */
    MK__OUTPUT_FAILED,  /* it cannot be completed */
    MK__OUTPUT_BROKEN,  /* the connection is of no use any more */
};

/* Serialises what is ready of the current response into http->out, flushing when that is full. */
enum mk__h1_output mk__h1_output(struct mk__h1 *c);

/* All that can be done without waiting; the state to wait in. */
enum mk__h1_state mk__h1_take_turn(struct mk__h1 *c);
/* Ends our side; the state to wait in until the client has ended its own. */
enum mk__h1_state mk__h1_goodbye(struct mk__h1 *c);
/* Throws away what still comes, so that the client reads our last answer before it sees a reset. */
enum mk__h1_state mk__h1_linger(struct mk__h1 *c);
/* The bytes of a connection that was taken over: of struct mk__carrier. */
ssize_t mk__h1_read_bytes(struct mk_request *req, void *to, size_t size);
ssize_t mk__h1_write_bytes(struct mk_request *req, const void *from, size_t size);
int mk__h1_shutdown_bytes(struct mk_request *req);
/* A turn of a connection that was taken over; the state to wait in. */
enum mk__h1_state mk__h1_tunnel(struct mk__h1 *c);
/* Takes bytes that were read behind a head: the count. */
size_t mk__h1_take_rest_bytes(struct mk__h1 *c, void *to, size_t size);
/* Ends the current exchange. */
void mk__h1_finish_exchange(struct mk__h1 *c, bool aborted);
/* Frees the unread input. */
void mk__h1_drop_rest(struct mk__h1 *c);

extern const struct mk__carrier mk__h1_carrier;

/*
 * Serves a fresh connection from now on; its first turn comes at once. Takes `io` (its descriptor is closed
 * in any case); `worker` is for its transport. 0 or -ENOMEM ...
 */
int mk__h1_open(struct mk__http *http, const struct mk_io *io, struct mk_worker *worker);

/* Stops keeping connections, but ends none: idle ones have until their time is over. */
void mk__h1_leave(struct mk__http *http);
/* Stops keeping connections: idle ones end now, the others after their current exchange. */
void mk__h1_drain(struct mk__http *http);
/* Have all connections ended that were there when the drain began? Later ones have one request each meanwhile. */
bool mk__h1_drained(const struct mk__http *http);
/*
 * Ends up to `n` connections that can be missed, the oldest first, and says how many: those that are idle
 * or linger, or else those that have not brought a whole head yet.
 */
unsigned mk__h1_close_idle(struct mk__http *http, unsigned n);
/* Ends all connections at once. */
void mk__h1_abort_all(struct mk__http *http);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * A connection of the generator: opens itself, sends prepared requests, reads and checks answers, and opens itself
 * again. It lives as long as its thread.
 *
 *     CLOSED ─► CONNECTING ─► (HANDSHAKE) ─► (UPGRADE) ─► OPEN ─► CLOSING ─► CLOSED
 *       ▲            │             │            │           │
 *       └── PAUSED ◄─┴─────────────┴────────────┴───────────┘   (errors; a pause, longer each time)
 *
 * A keep-alive connection that the server closes between two answers is opened again, and its requests are repeated. Of
 * ws:// the requests are messages, and the end of a connection is an error.
 */
#ifndef WR_LOAD_CONN_H
#define WR_LOAD_CONN_H

#include <monkey/loop.h>

#include "answer.h"
#include "loader.h"
#include "message.h"

struct tls;

enum conn_state { CONN_CLOSED, CONN_CONNECTING, CONN_HANDSHAKE, CONN_UPGRADE, CONN_OPEN, CONN_CLOSING, CONN_PAUSED };

struct conn {
    struct mk_event event; /* registered once, edge-triggered */
    struct loader *loader;
    uint8_t state;    /* enum conn_state */
    bool hashing;     /* the answer under way is a sample */
    bool ready;       /* is in the list of connections to be filled at the end of the turn */
    bool idle;        /* is in the ring of idle connections */
    bool drained;     /* the socket had less than was asked for */
    uint8_t failures; /* in a row, for the pause */
    unsigned address;
    uint32_t first, n; /* the ring of flights: the next to be answered, and how many */
    uint32_t unsent;   /* of them, at the end; the first of these may be sent in part */
    size_t sent_bytes; /* of that one */
    uint64_t since_ns; /* of the last progress, for the timeout */
    uint64_t answers;  /* on this connection */
    struct flight *flights;
    struct tls *tls;
    struct evp_md_ctx_st *hash;
    struct mk_timer pause;
    struct answer answer;
    struct reader reader; /* of ws:// */
    uint64_t received;    /* broadcasts */
};

/* Prepares a connection; `flights` has room for the plan's pipeline. */
void conn_init(struct conn *c, struct loader *loader, struct flight *flights);
void conn_release(struct conn *c);
/* Opens a closed connection; with --close only when a request is due. */
void conn_open(struct conn *c, uint64_t now_ns);
/* Takes and sends requests on an open connection, at the end of a turn. */
void conn_fill(struct conn *c);
/* Starts one request on an idle connection. Returns whether it could take more. */
bool conn_start(struct conn *c, uint64_t now_ns);
/* Returns whether the connection can take a request. */
bool conn_has_room(const struct conn *c);
/* Adds the connection to the ring of idle ones, in the open loop. */
void conn_add_idle(struct conn *c);
/* Fails the connection if nothing has happened for too long. */
void conn_check_timeout(struct conn *c, uint64_t now_ns);

#endif

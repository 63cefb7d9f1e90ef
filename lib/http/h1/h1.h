// SPDX-License-Identifier: Apache-2.0
/*
 * The turns of a connection that speaks HTTP/1 (RFC 9112). One turn does all that can be done without waiting: it
 * reads once, answers every request in what it read, and writes once.
 */
#ifndef MK_HTTP_H1_H1_H
#define MK_HTTP_H1_H1_H

#include "http/conn.h"

/* What stands in the way of more output. */
enum mk__h1_send_result {
    MK__H1_SEND_DONE,          /* the response is complete and handed over */
    MK__H1_SEND_NEEDS_HANDLER, /* for the handler */
    MK__H1_SEND_BLOCKED,       /* by the client */
    MK__H1_SEND_YIELD,         /* others first */
    MK__H1_SEND_NEEDS_DISK,    /* a job was sent; it will wake the exchange */
    MK__H1_SEND_TUNNEL,        /* the head has left, the rest is the handler's */
    MK__H1_SEND_FAILED,        /* it cannot be completed */
    MK__H1_SEND_BROKEN,        /* the connection is of no use any more */
};

/* Serialises what is ready of the current response into http->out, flushing when that is full. */
enum mk__h1_send_result mk__h1_send(struct mk__conn *c);

/* All that can be done without waiting; the state to wait in. */
enum mk__conn_state mk__h1_run_turn(struct mk__conn *c);
/* The bytes of a connection that was taken over: of struct mk__protocol. */
ssize_t mk__h1_tunnel_read(struct mk_request *req, void *to, size_t size);
ssize_t mk__h1_tunnel_write(struct mk_request *req, const void *from, size_t size);
int mk__h1_tunnel_shutdown(struct mk_request *req);
void mk__h1_tunnel_wake(struct mk_request *req);
/* A turn of a connection that was taken over; the state to wait in. */
enum mk__conn_state mk__h1_run_tunnel(struct mk__conn *c);
/* Takes bytes that were read behind a head: the count. */
size_t mk__h1_read_saved_input(struct mk__conn *c, void *to, size_t size);
/* Ends the current exchange. */
void mk__h1_finish_exchange(struct mk__conn *c, bool aborted);
/* Frees the unread input. */
void mk__h1_free_saved_input(struct mk__conn *c);

extern const struct mk__protocol mk__h1_protocol;

#endif

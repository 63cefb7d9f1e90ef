// SPDX-License-Identifier: Apache-2.0
/*
 * The turns of an HTTP/1 connection (RFC 9112). A turn does all that can be done without waiting: it reads once,
 * answers every request in that input, at most 32, and writes once.
 */
#ifndef MK_HTTP_H1_H1_H
#define MK_HTTP_H1_H1_H

#include "http/conn.h"

/* The unread input of a connection between two turns, in an allocation of exactly its size: c->proto_data. */
struct mk__h1_saved_input;

/* Why mk__h1_send() has stopped. */
enum mk__h1_send_result {
    MK__H1_SEND_DONE,          /* the response is complete, and in the output buffer or sent */
    MK__H1_SEND_NEEDS_HANDLER, /* waits for the handler */
    MK__H1_SEND_BLOCKED,       /* the socket is full */
    MK__H1_SEND_YIELD,         /* enough for one turn: other connections run first */
    MK__H1_SEND_NEEDS_DISK,    /* waits for a read job, which will wake the exchange */
    MK__H1_SEND_TUNNEL,        /* the head is sent; the handler has taken the connection over */
    MK__H1_SEND_FAILED,        /* the response cannot be completed */
    MK__H1_SEND_BROKEN,        /* the connection has failed */
};

/* Writes what is ready of the current response into http->out, and flushes that when it is full. */
enum mk__h1_send_result mk__h1_send(struct mk__conn *c);

/*
 * The same for a part whose bytes the handler moves to the client's socket; sets `part->splice` to NULL if they have to
 * be generated instead.
 */
enum mk__h1_send_result mk__h1_splice(struct mk__conn *c, struct mk_request *req, struct mk__part *part);

/*
 * Has the handler move what comes next of the body from the client's socket. Returns the number of bytes, 0 (the client
 * has ended its side, or the handler takes none now), -EAGAIN, -EOPNOTSUPP (they are to be read) or another -errno.
 */
ssize_t mk__h1_splice_body(struct mk__conn *c, struct mk_request *req);

/* The tunnel functions of struct mk__request_ops. */
ssize_t mk__h1_tunnel_read(struct mk_request *req, void *to, size_t size);
ssize_t mk__h1_tunnel_write(struct mk_request *req, const void *from, size_t size);
int mk__h1_tunnel_shutdown(struct mk_request *req);
void mk__h1_tunnel_wake(struct mk_request *req);
/* Runs a turn of a connection that was taken over. Returns the state to wait in. */
enum mk__conn_state mk__h1_tunnel_run(struct mk__conn *c);
/* Moves up to `size` bytes of the saved input to `to`. Returns the number of bytes. */
size_t mk__h1_read_saved_input(struct mk__conn *c, void *to, size_t size);
/* Ends and frees the current exchange. */
void mk__h1_finish_exchange(struct mk__conn *c);
/* Frees the saved input, if there is any. */
void mk__h1_free_saved_input(struct mk__conn *c);

extern const struct mk__proto mk__h1_proto;
extern const struct mk__request_ops mk__h1_request_ops;

#endif

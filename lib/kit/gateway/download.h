// SPDX-License-Identifier: Apache-2.0
/*
 * The way of a response from its backend: heads as a whole, then the body in the pieces that the caller has room for.
 */
#ifndef MK_GATEWAY_DOWNLOAD_H
#define MK_GATEWAY_DOWNLOAD_H

#include "backend.h"

#include <monkey/base/arena.h>

enum { MK__GW_INTERIM_MAX = 16 }; /* interim responses before the last head */

struct mk__gw_download {
    const struct mk_gateway_call *call;
    const struct mk_response_limits *limits;
    struct mk_response_parser parser;
    struct mk_field *fields; /* of the last head; in the arena, as `kept`, while that is not complete */
    char *kept;              /* the beginning of a head that is not complete */
    size_t kept_len;
    char *rest; /* bytes after the head, in the buffer of the last read: valid until the callback returns */
    size_t rest_len;
    struct mk_buf trailers;
    bool has_begun;  /* a byte has come on this connection */
    bool has_excess; /* there were bytes after the response */
    bool has_failed; /* the connection, by its transport's word */
    bool has_ended;  /* the response, as the protocol around it says */
    bool is_refused; /* the backend has not begun the request */
};

/* Begins, also for a second connection. `call` lasts as long as the download. */
void mk__gw_download_begin(struct mk__gw_download *d, const struct mk_gateway_call *call, enum mk_response_to to);
void mk__gw_download_release(struct mk__gw_download *d);
/*
 * Moves what was read to another owner with this call, whose arena gets the beginning of a head. Returns 0, or -ENOMEM:
 * nothing.
 */
int mk__gw_download_move(struct mk__gw_download *to, struct mk__gw_download *from, const struct mk_gateway_call *call,
                         struct mk_arena *arena);

/*
 * Reads up to the end of the next head, into `buffer`, and its headers into `fields`, of which there are as many as the
 * limit says. Call it again after a head of 1xx.
 * Returns 0 (d->parser and d->fields describe the head in `*ret_head`), -EAGAIN, -EPIPE (the connection has ended),
 * -EINVAL, -EMSGSIZE, -ENOMEM or another -errno of the connection.
 */
int mk__gw_download_head(struct mk__gw_download *d, struct mk__gw_backend_conn *conn, struct mk_arena *arena,
                         struct mk_field *fields, char *buffer, size_t size, struct mk_str *ret_head);

/*
 * Returns what of the body came with the head; decoded in place. Once, after the last head. `*ret_err`: 0 or -errno of
 * what follows.
 */
struct mk_str mk__gw_download_first(struct mk__gw_download *d, int *ret_err);
/*
 * Reads what comes next of the body. Returns the number of bytes, 0 (it is complete), -EAGAIN, -EPIPE (it was cut) or
 * another -errno.
 */
ssize_t mk__gw_download_body(struct mk__gw_download *d, struct mk__gw_backend_conn *conn, char *to, size_t size);
/*
 * Moves what comes next of a body with a length through `pipe` to a socket, at most `size` bytes; without `conn` only
 * what is in the pipe. Returns the number of bytes, 0 (there are no more), -EAGAIN (of the backend), -EBUSY (the socket
 * takes no more now), -ECONNABORTED (the socket has failed), -EPIPE (the body was cut), -EOPNOTSUPP (the system does
 * not do that: the bytes can be read) or another -errno of `conn`.
 */
ssize_t mk__gw_download_splice(struct mk__gw_download *d, struct mk__gw_backend_conn *conn, struct mk__gw_pipe *pipe,
                               int fd, size_t size);

/* Returns the head that was read last, whose bytes are valid as long as the buffer that they were read into. */
static inline struct mk_gateway_head mk__gw_download_get_head(const struct mk__gw_download *d, struct mk_str bytes)
{
    return (struct mk_gateway_head){.parser = &d->parser, .fields = d->fields, .bytes = bytes};
}

/* Tells whether bytes of the body may move by splice(2): no bytes of the protocol are among them. */
static inline bool mk__gw_download_is_plain(const struct mk__gw_download *d)
{
    return !d->call->protocol->unwrap && d->parser.body == MK_RESPONSE_BODY_LENGTH;
}

/* Tells whether the response lets another request use the connection. */
static inline bool mk__gw_download_keeps_conn(const struct mk__gw_download *d)
{
    bool is_kept = d->call->protocol->keeps_conn ? d->has_ended && d->call->protocol->keeps_conn(d->call)
                                                 : mk_response_parser_keeps_conn(&d->parser);
    return d->parser.is_done && is_kept && !d->has_excess;
}

#endif

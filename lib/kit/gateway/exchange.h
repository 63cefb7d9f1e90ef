// SPDX-License-Identifier: Apache-2.0
#ifndef MK_GATEWAY_EXCHANGE_H
#define MK_GATEWAY_EXCHANGE_H

#include "gateway.h"

#include <monkey/base/arena.h>
#include <monkey/conf.h>
#include <monkey/kit/gateway.h>
#include <monkey/kit/spool.h>
#include <monkey/plugin.h>
#include <monkey/request.h>
#include <monkey/tunnel.h>

#include <stddef.h>

/*
 * Files that a backend names in X-Accel-Redirect or X-Sendfile, below the folders of SendFile: this server sends them.
 */

/* What a response asks for. */
struct mk__gw_named_file {
    const char *log_name; /* for lines of the log */
    struct mk_str value;  /* of the header */
    bool is_uri;          /* of X-Accel-Redirect: percent-encoded, and also a path within a folder */
    struct mk_str type;   /* of the backend, valid until the exchange ends; empty: by the extension */
    bool no_ranges;
};

/*
 * Responds with the file and the headers that were added, or with 403, 404, 500 or 503, and a line in the log.
 * `folders` lasts as long as the generation.
 */
void mk__gw_send_file_respond(struct mk_request *req, const struct mk_conf_list *folders,
                              const struct mk__gw_named_file *named);

/*
 * The way of a response from its backend: heads as a whole, then the body in the pieces that the caller has room for.
 */

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

/*
 * The way of a request to its backend: what the socket does not take at once is kept, and the caller pauses the client
 * meanwhile. So no more than a piece is in memory.
 */
struct mk__gw_upload {
    struct mk_str head;                     /* valid in this turn of the loop, and not sent yet; `.p` NULL: none */
    struct mk_buf unsent;                   /* what the connection has not taken */
    struct mk__gw_pipe *pipe;               /* NULL, or the same by splice(2) */
    const struct mk_gateway_frames *frames; /* NULL: pieces are sent as they are */
    struct mk_str body_end;                 /* in place of that of the frames; `.p` NULL: that */
    bool is_held;                           /* the transport holds bytes that it has taken */
    bool has_body;
    uint64_t sent_bytes; /* on all connections */
    bool is_sent;        /* the backend may have some of it */
    bool body_begun;     /* a piece of the body was taken: the request cannot be repeated */
    bool body_ended;     /* all of it was taken */
    bool is_refused;     /* the backend takes no more; it may have sent a response before */
};

/* Begins, also for a second connection, with a head that is sent with what follows or by mk__gw_upload_flush(). */
void mk__gw_upload_begin(struct mk__gw_upload *u, struct mk_str head, bool has_body,
                         const struct mk_gateway_frames *frames);
void mk__gw_upload_release(struct mk__gw_upload *u);
/* Moves what waits to another owner. `from` has nothing any more. */
void mk__gw_upload_move(struct mk__gw_upload *to, struct mk__gw_upload *from);

/* Sends a piece of the body, framed, or keeps it. `end`: it is the last one. Returns 0 or -ENOMEM. */
int mk__gw_upload_piece(struct mk__gw_upload *u, struct mk_io *io, struct mk_str piece, bool end);
/*
 * Moves up to `size` bytes of the body from the socket `fd` by splice(2), where no bytes wait; it has a length. Returns
 * as mk_body_splice_fn, or -ENOMEM.
 */
ssize_t mk__gw_upload_splice(struct mk__gw_upload *u, struct mk__gw_pipes *pipes, struct mk_io *io, int fd,
                             size_t size);
/* Sends what waits. Returns 0 or -ENOMEM. */
int mk__gw_upload_flush(struct mk__gw_upload *u, struct mk_io *io);

/* Tells whether bytes wait for the backend. */
static inline bool mk__gw_upload_is_blocked(const struct mk__gw_upload *u)
{
    return u->unsent.len > 0 || u->pipe || u->is_held;
}

/* Tells whether no more of the body is awaited. */
static inline bool mk__gw_upload_is_taken(const struct mk__gw_upload *u)
{
    return u->body_ended || !u->has_body || u->is_refused;
}

/* Tells whether the backend has got all of it. */
static inline bool mk__gw_upload_is_done(const struct mk__gw_upload *u)
{
    return u->is_sent && !u->is_refused && !mk__gw_upload_is_blocked(u) && mk__gw_upload_is_taken(u);
}

/*
 * A body of an exchange that waits in a spool (<monkey/kit/spool.h>). Jobs of the spool may be under way when the
 * exchange ends: the worker is held until then.
 */

/* Is called for enum mk_spool_ready, in the loop; it may close the spool. */
typedef void (*mk__gw_spooled_fn)(void *user, unsigned what);

struct mk__gw_spooled {
    struct mk_spool *spool;
    struct mk_worker *worker;
    struct mk_account *account;
    mk__gw_spooled_fn ready;
    void *user;
};

/*
 * The body of a request that is received as a whole, in a spool, before the backend is asked: a client that is slow
 * holds no backend, and the request can be repeated.
 *
 *     mk__gw_received_begin ─► (pieces) ─► `ready` ─► mk__gw_received_send ... ─► mk__gw_received_rewind, for a retry
 */
struct mk__gw_received;

/*
 * Is called in the loop, possibly within mk__gw_received_begin(), which returns 0 then: once when the body is complete
 * (`err` 0), or could not be kept: -EFBIG (it is too long) or another -errno. Then with 0 when mk__gw_received_send()
 * can continue.
 */
typedef void (*mk__gw_received_fn)(struct mk__gw_received *r, int err);

/* Zeros: not used. */
struct mk__gw_received {
    struct mk_request *req;
    struct mk__gw_spooled *spooled; /* NULL: not used, or released */
    uint64_t bytes_max;
    bool is_complete;
    bool has_failed;
    mk__gw_received_fn ready;
};

/*
 * Begins to receive a body of at most `bytes_max` bytes. Returns 0, -EFBIG (it says that it is longer), or -EDQUOT or
 * -ENOMEM of mk_spool_open(); `ready` is not called then.
 */
int mk__gw_received_begin(struct mk__gw_received *r, struct mk_request *req, uint64_t bytes_max,
                          mk__gw_received_fn ready);
/* Frees what was received. Does nothing if it is not used. */
void mk__gw_received_release(struct mk__gw_received *r);

/* Returns the length of a body that is complete. */
uint64_t mk__gw_received_length(const struct mk__gw_received *r);
/*
 * Sends what the connection takes, after a head that mk__gw_upload_begin() was given. Returns 0 (`ready` follows if
 * that is not all, or the connection can take bytes again), -EDQUOT (it cannot be read) or -ENOMEM.
 */
int mk__gw_received_send(struct mk__gw_received *r, struct mk__gw_upload *u, struct mk_io *io);
/* Begins again with the first byte. Returns 0 or -errno. */
int mk__gw_received_rewind(struct mk__gw_received *r);
/* Moves a complete body to another owner. `from` is not used any more. */
void mk__gw_received_move(struct mk__gw_received *to, struct mk__gw_received *from, mk__gw_received_fn ready);

/*
 * What a client does not take of a response, so that it does not hold the backend.
 *
 *     backend ─► client                        as long as the client takes what comes
 *     backend ─► spool ─► client               from when it has not for a while, until the spool is empty
 *
 * So a client that is fast costs no copy. A full disk and a budget that is used up leave the bytes with the backend.
 */
struct mk__gw_buffer;

/* Is called when bytes of the backend are to be read into the buffer, and there is room. */
typedef void (*mk__gw_buffer_fn)(struct mk__gw_buffer *b);

struct mk__gw_buffer {
    struct mk_request *req;
    const struct mk_gateway_buffer *limits; /* NULL: nothing is kept */
    struct mk__gw_spooled *spooled;         /* NULL: nothing waits */
    struct mk_timer timer;
    bool is_armed;
    bool is_live;      /* the response is a stream that has no use later */
    uint64_t asked_ms; /* when the client could take bytes last */
    mk__gw_buffer_fn fill;
};

/* Tells whether a response of this Content-Type is a stream whose bytes have no use later. */
bool mk__gw_buffer_is_live_type(struct mk_str type);

/* Prepares it; nothing is kept before mk__gw_buffer_begin(). */
void mk__gw_buffer_init(struct mk__gw_buffer *b, struct mk_request *req, mk__gw_buffer_fn fill);
/* Begins with the body of a response, whose head is set; event streams and the like are not kept. */
void mk__gw_buffer_begin(struct mk__gw_buffer *b, const struct mk_gateway_buffer *limits);
void mk__gw_buffer_release(struct mk__gw_buffer *b);

/* The client can take bytes. */
void mk__gw_buffer_note_asked(struct mk__gw_buffer *b);
/* There are, or may be, bytes of the backend that the client has not asked for: `fill` is called when they are due. */
void mk__gw_buffer_offer(struct mk__gw_buffer *b);

/* Returns 0 (MK_SPOOL_WRITE_MAX bytes can be added), MK_AGAIN (`fill` follows when they can) or -errno. */
int mk__gw_buffer_room(struct mk__gw_buffer *b);
/* Adds bytes, none or more, after mk__gw_buffer_room(). `end`: they are the last. Returns 0 or -errno. */
int mk__gw_buffer_add(struct mk__gw_buffer *b, struct mk_str bytes, bool end);

/* Tells whether bytes wait: they come before others. */
static inline bool mk__gw_buffer_has_bytes(const struct mk__gw_buffer *b)
{
    return b->spooled;
}
/* Gives the next bytes that wait. Returns their number, -EAGAIN (the response is woken) or another -errno. */
ssize_t mk__gw_buffer_read(struct mk__gw_buffer *b, char *to, size_t size);

/*
 * Passes bytes between a client and a backend in both directions, after an upgrade.
 *
 *     each direction:  OPEN ─► ENDED (its source has ended, what waits is passed on) ─► SHUT (so is the end)
 *
 * The tunnel ends when both directions are shut, or with the first error of a side. In a direction at most one piece
 * waits in memory, while the receiver does not take it; the sender is not read meanwhile.
 */
struct mk__gw_tunnel_direction {
    char *piece; /* NULL: none waits */
    uint32_t size, at;
    bool has_ended, is_shut;
    bool is_refused; /* the receiver has failed */
};

/* In the arena of the request, as long as that. */
struct mk__gw_tunnel {
    struct mk_request *req;
    struct mk__gw_backend *backend;   /* held */
    struct mk__gw_backend_conn *conn; /* NULL: there is no tunnel, or it has ended */
    struct mk__gw_tunnel_direction up, down;
    bool is_open; /* the head of the response was sent */
};

/*
 * Takes the exchange over, and the connection with the hold of its backend. `rest` are bytes of it that were read
 * already; it copies them. Returns 0, or -errno, and the connection stays the caller's.
 */
int mk__gw_tunnel_open(struct mk__gw_tunnel *t, struct mk_request *req, struct mk__gw_backend_conn *conn,
                       struct mk_str rest);
/* Ends with the exchange. Does nothing for a struct of zeros. */
void mk__gw_tunnel_release(struct mk__gw_tunnel *t);

/*
 * What an exchange leaves for operators: counters of all backends and its own, times, and notes for the log
 * (`upstream` and others, see docs/guide/logs.md). Times and notes are left out unless a loaded plugin wants times
 * (MK_PLUGIN_TIMES). Those of the notes begin with the exchange; a histogram of a server has what that server took,
 * without the waits and the servers before.
 *
 *     mk__gw_report_begin ─► mk__gw_report_connected ─► mk__gw_report_head ─► mk__gw_report_end
 *          │               ▲    └─ mk__gw_report_retry ─┐
 *          └───────────────┴─────────────────────┴──► mk__gw_report_failure
 */
struct mk__gw_report {
    struct mk_request *req;
    const struct mk_gateway *gateway;
    const struct mk_backend_stats *stats;
    uint64_t began_us;         /* 0: no times are wanted */
    uint64_t server_us;        /* when the request went to its server, or to the only one */
    unsigned retries, servers; /* of a group, given to it */
};

/* The request is for this route. With a group, mk__gw_report_server() follows. */
void mk__gw_report_begin(struct mk__gw_report *r, struct mk_request *req, const struct mk_gateway_route *route);
/* It goes to this server of a group; after another one, whose `failure` is the reason. */
void mk__gw_report_server(struct mk__gw_report *r, const struct mk_backend_stats *stats, struct mk_str address,
                          enum mk_upstream_failure failure);
/* It has a connection, kept or new. */
void mk__gw_report_connected(const struct mk__gw_report *r);
/* A new connection was opened; it is ready for the request, this long after its dial began. */
void mk__gw_report_opened(const struct mk__gw_report *r);
void mk__gw_report_ready(const struct mk__gw_report *r, uint64_t connect_us);
/* The request is sent again. */
void mk__gw_report_retry(struct mk__gw_report *r, enum mk_upstream_failure reason);
/* The head of the response has come, with this status. */
void mk__gw_report_head(const struct mk__gw_report *r, unsigned status);
/* Instead of a head, or after it, this try has ended with an error: its type (RFC 9209 section 2.3). */
void mk__gw_report_error(const struct mk__gw_report *r, const char *type);
/* The response is complete, or has become a tunnel. */
void mk__gw_report_end(const struct mk__gw_report *r);
/* The exchange has failed, with -errno. */
void mk__gw_report_failure(const struct mk__gw_report *r, int err);

/* ── what can go wrong with a backend, as it is said to the client (Proxy-Status, RFC 9209) and to the log ── */

struct mk__gw_failure {
    int err; /* 0: any other */
    bool is_dial;
    bool is_own; /* of this process or its machine: the backend did not cause it */
    uint16_t status;
    const char *type; /* RFC 9209 section 2.3 */
    const char *text; /* NULL: of mk_dial_error() or strerror() */
};

/* Finds the failure for -errno of a dial, or of what follows it. */
const struct mk__gw_failure *mk__gw_failure_find(bool is_dial, int err);
/*
 * Adds to `out` what a response's -errno means, in the words of its protocol if that has any. `head` has the bytes of a
 * malformed head. Returns what the client may know of it, a literal; empty: no more than its type.
 */
struct mk_str mk__gw_failure_describe(const struct mk__gw_failure *f, const struct mk__gw_download *down, int err,
                                      const char *head, struct mk_buf *out);
/* Writes the value of Proxy-Status; `details` may be empty. */
void mk__gw_failure_write(struct mk_buf *out, const char *type, struct mk_str details);
/* Responds with an error of this server, and with Proxy-Status. */
void mk__gw_failure_respond(struct mk_request *req, int status, const char *type, struct mk_str details);

/*
 * One request that is passed to a backend, and its response. What its files share: exchange.c (its life, failures,
 * timeouts, the connection), exchange_up.c (which server, and the request) and exchange_down.c (the response).
 */
enum mk__gw_phase {
    MK__GW_QUEUED, /* it waits for a server of the group */
    MK__GW_DIALING,
    MK__GW_HANDSHAKE, /* within the time of the dial */
    MK__GW_WAITING,   /* for the head of the response */
    MK__GW_BODY,      /* the head was passed to the client */
    MK__GW_ENDED,     /* it has no connection any more */
};

struct mk__gw_exchange;

/* In the arena of the request. */
struct mk__gw_owner {
    struct mk__gw_exchange *exchange; /* NULL: it has become a tunnel */
    struct mk__gw_tunnel tunnel;
};

struct mk__gw_exchange {
    struct mk__gw_owner *owner;
    struct mk_request *req;
    const struct mk_gateway_route *route;
    const struct mk_gateway_conf *conf;
    const struct mk__gw_client *client;
    struct mk__gw_thread *thread;
    struct mk_loop *loop;
    struct mk__gw_backend *backend;
    bool uses_backend;              /* the request is with it, and not only held by this struct */
    struct mk_upstream_tries tries; /* with a group, as the next */
    struct mk_upstream_wait wait;
    struct mk__gw_backend_conn *conn; /* or NULL */
    struct mk__gw_report report;
    struct mk_dial dial;
    struct mk_timer timer;
    uint64_t timer_ms;                 /* when it fires; 0: it is not armed */
    uint64_t wait_end_ms, deadline_ms; /* UINT64_MAX: none */
    uint32_t wait_left_ms;             /* of a wait for the body that has stopped */
    uint64_t dialed_us, sent_ms;       /* when the dial began, and when some of the request was sent */
    uint8_t phase;                     /* enum mk__gw_phase */
    struct mk_gateway_call call;
    struct mk_gateway_body body;
    bool is_idempotent;
    bool is_continue_received; /* the client does not wait for a 100 (Continue) */
    bool is_retry;
    bool is_redial;      /* there was no descriptor for the dial */
    bool is_reading;     /* the request's body has a reader */
    bool is_paused;      /* the client, until the backend has taken what waits */
    bool awaits_bytes;   /* the client takes bytes, and there are none */
    bool is_taken;       /* the client takes what comes, by splice(2) */
    bool awaits_backend; /* for bytes of the body */
    bool has_body_bytes; /* some have come since that wait has begun */
    unsigned n_interim;
    struct mk__gw_pipe *pipe;        /* NULL, or it has bytes of the body, which come before those of the connection */
    struct mk__gw_received received; /* the body, with SpoolRequest */
    struct mk__gw_upload up;
    struct mk__gw_download down;
    struct mk__gw_buffer buffer;
    _Alignas(max_align_t) char state[]; /* of the protocol */
};

/* ── exchange.c ── */

/* Fails with -errno: retries, responds instead of the backend or cuts the response. Does nothing in MK__GW_ENDED. */
void mk__gw_exchange_fail(struct mk__gw_exchange *x, int err);
/* Something has happened: the present wait begins anew. */
void mk__gw_exchange_touch(struct mk__gw_exchange *x);
/* Begins a wait of `ms`; 0: without an end. */
void mk__gw_exchange_wait(struct mk__gw_exchange *x, uint32_t ms);
/* The response is complete: the connection is kept, if all is as it should be. */
void mk__gw_exchange_finish(struct mk__gw_exchange *x);
/* Responds instead of the backend. */
void mk__gw_exchange_reject(struct mk__gw_exchange *x, int status);
/* Responds instead of the backend, and says why; `details` may be empty. */
void mk__gw_exchange_respond_failure(struct mk__gw_exchange *x, int status, const char *type, struct mk_str details);
/* Logs why this server itself cannot pass the request on. */
void mk__gw_exchange_log_own(const struct mk__gw_exchange *x, const char *reason);
/* Responds with 503, because there is no memory, and logs it. */
void mk__gw_exchange_reject_memory(struct mk__gw_exchange *x);
/* Tells whether the request can be sent once more: no part of a body prevents it. */
bool mk__gw_exchange_can_resend(const struct mk__gw_exchange *x);
void mk__gw_exchange_free(struct mk__gw_exchange *x);

/* ── exchange_up.c: the server ── */

/*
 * The server has done what it has to do: it may have another request, although the client is still being sent this one.
 * Returns as mk__gw_backend_end_use().
 */
bool mk__gw_exchange_end_use(struct mk__gw_exchange *x);

/*
 * Holds the backend of the section, or of a server of its group which the request has not had, in place of the one
 * before, whose connection is closed. Returns 0; MK_AGAIN (the exchange is MK__GW_QUEUED, without a backend, and
 * mk__gw_exchange_connect_server() or mk__gw_exchange_fail() follows); or -ENXIO (no server of the group can be used),
 * -EBUSY (its queue is full) or -ENOMEM, and nothing has changed.
 */
int mk__gw_exchange_choose_server(struct mk__gw_exchange *x);
/* Tells the group how its server has served; does nothing without one. */
void mk__gw_exchange_report_outcome(struct mk__gw_exchange *x, const struct mk_upstream_outcome *outcome);
/* Tells whether a head with this status is to be dropped, and another server has the request now. */
bool mk__gw_exchange_tries_after_status(struct mk__gw_exchange *x, unsigned status);

/* ── exchange_up.c: the connection, and the request ── */

/* Chooses a server and connects, for a request whose body is there, or follows as it comes. */
void mk__gw_exchange_connect(struct mk__gw_exchange *x);
/* Connects to the server that was chosen for a further try; the request is sent once more. */
void mk__gw_exchange_connect_server(struct mk__gw_exchange *x);
/* Sends the request on a connection that is idle, or on a new one. */
void mk__gw_exchange_take_conn(struct mk__gw_exchange *x);

/* Receives the body before the backend is asked. */
void mk__gw_exchange_up_receive(struct mk__gw_exchange *x);
/* Prepares it for another connection. */
void mk__gw_exchange_up_rewind(struct mk__gw_exchange *x);

/* ── exchange_down.c ── */

/* The connection has bytes, or has ended. */
void mk__gw_exchange_down_resume(struct mk__gw_exchange *x);
/* Reads what the client does not take now. */
void mk__gw_exchange_down_fill(struct mk__gw_buffer *buffer);

/*
 * Requests whose clients have left, with `OnClientLeave Finish`: what the backend has begun is brought to its end, and
 * its response is read and dropped.
 *
 * An orphan holds the worker under which it began, and so the configuration; a stop of the server waits for it up to
 * ShutdownTimeout. All in the thread of the loop.
 */

/* What an exchange has of a request that was received as a whole. */
struct mk__gw_orphan_parts {
    struct mk_worker *worker;
    const struct mk_gateway_call *call;
    struct mk__gw_backend_conn *conn;
    struct mk__gw_upload *up;
    struct mk__gw_received *received;
    struct mk__gw_download *down;
    bool has_head; /* the response has begun */
    uint64_t deadline_ms;
};

/*
 * Takes the connection over, with the hold of its backend, and what the other parts own. Returns false, and has taken
 * nothing, without memory or if there are ORPHANS_MAX already.
 */
bool mk__gw_orphan_adopt(const struct mk__gw_orphan_parts *parts);
/* Drops those of a worker that stops; in worker_stop. */
void mk__gw_orphans_stop(struct mk__gw_thread *t, const struct mk_worker *worker);

#endif

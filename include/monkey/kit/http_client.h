// SPDX-License-Identifier: Apache-2.0
/*
 * One request to another HTTP/1.1 server and its response, in the thread of a loop: for health checks, and for answers
 * that a plugin fetches. It never blocks, and one timeout covers all. The connection ends with it, or is kept idle for
 * the next one.
 *
 *     mk_http_client_start ─► dial ─► handshake ─► request ─► heads ─► body ─► callback(response or error)
 *            ├──────── a connection of mk_http_idle ──▲                             │
 *            └─────────────────── mk_http_client_cancel: no callback ───────────────┘
 *
 * In the kit: plugins link -lmonkey-kit.
 */
#ifndef MONKEY_HTTP_CLIENT_H
#define MONKEY_HTTP_CLIENT_H

#include "../base/dial.h"
#include "../base/response_parser.h"
#include "../transport.h"

MK_C_BEGIN

/* Plain sockets, for connections that a plugin opens. It needs no settings. */
extern MK_API const struct mk_transport mk_transport_plain;

enum {
    MK_HTTP_CLIENT_TIMEOUT_MS = 10000, /* these three: if the options give none */
    MK_HTTP_CLIENT_HEAD_BYTES = 16384,
    MK_HTTP_CLIENT_FIELDS = 100,
    MK_HTTP_CLIENT_BODY_BYTES_MAX = 16 << 20,
    MK_HTTP_IDLE_MAX = 32,  /* connections in a struct mk_http_idle; the one that was used first is closed then */
    MK_HTTP_IDLE_MS = 4000, /* how long one is kept; most servers close theirs after 5 s or more */
};

/*
 * Tells whether credentials, or one of the challenges of a WWW-Authenticate, log a connection in, not a request: NTLM
 * does, and often Negotiate. Such a connection belongs to one client. Pure.
 */
MK_API bool mk_http_login_binds_connection(struct mk_str value);
/* The same of a response, whose head begins at `head`. */
MK_API bool mk_http_response_binds_connection(const struct mk_response_parser *p, const struct mk_field *fields,
                                              const char *head);

struct mk_http_client;
struct mk_http_conn;
struct mk_backend_stats;

/* Connections of a thread that are kept between requests, in the caller's storage. The fields are private. */
struct mk_http_idle {
    struct mk_loop *loop;
    struct mk_list list; /* struct mk_http_conn */
    unsigned n;
    struct mk_timer timer;
};

/* Makes it empty. `loop` is that of the requests. */
MK_API void mk_http_idle_init(struct mk_http_idle *idle, struct mk_loop *loop);
/*
 * Closes all of them. Before the settings of their transports end, at the latest in worker_stop; requests that are
 * under way must have ended then. May be used again. In the thread of the loop.
 */
MK_API void mk_http_idle_close(struct mk_http_idle *idle);

/*
 * What a server has around its responses, if it does not speak HTTP: a protocol whose responses have a head with fields
 * and a body. `state` is that of the options.
 */
struct mk_http_client_codec {
    /*
     * Takes what the protocol has around the response out of `*len` bytes, in place; `*len` becomes what is left.
     * Returns 0 (more follows), 1 (the response has ended) or -errno.
     */
    int (*unwrap)(void *state, char *bytes, size_t *len);
    /* Reads a head in place of mk_response_parser_head(), and returns as that; it sets the fields of the parser. */
    int (*parse_head)(void *state, struct mk_response_parser *p, struct mk_field *fields, struct mk_str head);
};

struct mk_http_client_options {
    const struct mk_dial_target *target; /* must stay until the end */
    /* How the connection carries its bytes; NULL: mk_transport_plain. Other ones need the worker of the loop. */
    const struct mk_transport *transport;
    struct mk_transport_client *settings; /* of the transport; must stay until the end */
    struct mk_worker *worker;             /* may be NULL with plain sockets */
    /*
     * The request as it is sent: the head, which asks for `Connection: close` without `idle`, and the body. Must stay
     * until the end. Without a head nothing is sent: the response is that the connection, and its handshake, are there.
     */
    struct mk_str head, body;
    const struct mk_http_client_codec *codec; /* NULL: HTTP/1.1 */
    void *codec_state;                        /* as the codec says; must stay until the end */
    uint32_t timeout_ms;                      /* for everything; 0: MK_HTTP_CLIENT_TIMEOUT_MS */
    uint16_t head_bytes_max;                  /* of one head of the response; 0: MK_HTTP_CLIENT_HEAD_BYTES */
    uint16_t fields_max;                      /* 0: MK_HTTP_CLIENT_FIELDS */
    /*
     * What is kept of the body: the exchange ends when that is there. 0: the body is not wanted, and the exchange ends
     * with the head. At most MK_HTTP_CLIENT_BODY_BYTES_MAX.
     */
    uint32_t body_bytes_max;
    /*
     * Where a connection is taken from, to the same address with the same settings, and kept; NULL: nowhere. For
     * requests of HTTP that may be repeated (RFC 9110 section 9.2.2): a kept connection that ends before the response
     * has begun costs a new one, and no error. Requests whose credentials log a connection in must not have it; one
     * that the server asks for such a login is not kept.
     */
    struct mk_http_idle *idle;
    const struct mk_backend_stats
        *stats; /* counts the request (<monkey/kit/backend_stats.h>); NULL: nothing is counted */
};

/* Is valid until the callback returns, with what it points to. */
struct mk_http_response {
    int err;           /* 0, or -errno: the rest, but for the next two, is not set */
    const char *error; /* a phrase for people, of the transport where it has one: "no response in 2s" */
    bool is_connected; /* there was a connection, with its handshake: the server may have got the request */
    unsigned status;   /* 200 to 999; 0: nothing was asked for */
    struct mk_str head;
    const struct mk_field *fields; /* spans of `head`: mk_span_str(response->head.p, fields[0].value) */
    unsigned n_fields;
    struct mk_str body;
    bool is_whole; /* `body` is all of it; may be false if that is just what was wanted */
};

/*
 * The exchange is over: the connection is closed or kept, and the memory of `client` may be freed or used again.
 *
 *   - As of mk_dial_fn: there was no connection. -ETIMEDOUT: the time is over.
 *   - -EPIPE, -ECONNRESET: the connection has ended before the response was complete.
 *   - -EINVAL, -EPROTO: the response is malformed, or switches to a protocol that was not asked for.
 *   - -EMSGSIZE: a head above a limit. -ELOOP: too many interim responses. -ENOMEM. Those of the transport.
 *   - -EFBIG: too many bytes that a codec takes out.
 *   - -EUSERS, -ENOPROTOOPT and others of the codec: the server refuses the request.
 */
typedef void (*mk_http_client_fn)(struct mk_http_client *client, const struct mk_http_response *response);

/*
 * A request, in the caller's storage, where it must stay until the callback or mk_http_client_cancel(). All zeros: not
 * in progress. The fields are private to the library. Only the response is allocated.
 */
struct mk_http_client {
    struct mk_loop *loop;
    mk_http_client_fn fn;
    struct mk_http_client_options options;
    struct mk_response_limits limits;
    struct mk_response_parser parser;
    struct mk_dial dial;
    struct mk_http_conn *conn; /* NULL: there is none */
    struct mk_timer timer;
    uint64_t began_us, dialed_us; /* with `stats` */
    struct mk_buf in;             /* the head, then what is kept of the body */
    struct mk_field *fields;      /* NULL: not allocated */
    size_t sent;
    uint32_t framing_bytes; /* of the codec */
    uint8_t state;          /* 0: not in progress */
    uint8_t n_interim;      /* responses of 1xx */
    bool has_failed;        /* a call of the transport */
    bool has_ended;         /* the response, by the codec */
    bool is_reused;         /* the connection was kept idle, and nothing has come on it */
    bool has_excess;        /* bytes after the response */
};

/*
 * Begins. Calls `fn` exactly once with the result, errors included: never from within this call, and not after
 * mk_http_client_cancel(). `client` must not be in progress; the options are copied. In the thread of the loop.
 */
MK_API void mk_http_client_start(struct mk_http_client *client, struct mk_loop *loop,
                                 const struct mk_http_client_options *options, mk_http_client_fn fn);

/*
 * Cancels it, and closes its connection: `fn` is not called. Does nothing if it is over or was never started. At the
 * latest in the worker_stop of the last worker of the thread, where the loop may have ended.
 */
MK_API void mk_http_client_cancel(struct mk_http_client *client);

MK_C_END

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * The HTTP context of one thread: settings (a struct, not a configuration), callbacks (not a server), pools and scratch
 * buffers. All connections and exchanges of the thread share it. Lives as long as the thread.
 */
#ifndef MK_HTTP_CONTEXT_H
#define MK_HTTP_CONTEXT_H

#include <monkey/base/address.h>
#include <monkey/base/buf.h>
#include <monkey/request.h>

#include "base/counters.h"
#include "base/pool.h"
#include "base/random_pool.h"
#include "http/message/preface.h"
#include "http/message/request_head.h"
#include "http/recent_windows.h"
#include "net/sock.h"

#include <assert.h>

/* The timeouts of the states of a connection (http/conn.h). */
enum mk__timeout {
    MK__TIMEOUT_HEAD,
    MK__TIMEOUT_BODY,
    MK__TIMEOUT_HANDLER,
    MK__TIMEOUT_SEND,
    MK__TIMEOUT_IDLE,
    MK__TIMEOUT_LINGER,
    MK__TIMEOUT_TUNNEL,
    MK__TIMEOUT_HANDSHAKE,
    MK__TIMEOUTS,
};

/* The limits of an exchange; on_head() and on_request() may set others than those of the settings. */
struct mk__http_limits {
    uint32_t timeout_ms[MK__TIMEOUTS];
    uint64_t body_bytes_max;    /* of any body; above: 413 */
    uint64_t collect_bytes_max; /* of a body collected in memory; above: 413 */
    uint64_t discard_bytes_max; /* of a body that is discarded after the response; above: the connection is closed */
    uint64_t body_rate_min;     /* bytes per second, after a grace of a few seconds; 0 = none */
};

/* The proxies whose information about clients is used. */
struct mk__trusted_proxies {
    struct mk_networks networks;
    bool use_forwarded; /* Forwarded rather than X-Forwarded-For */
};

struct mk__http_settings {
    struct mk__parse_limits head;
    struct mk__http_limits limits;
    uint64_t requests_max;   /* per connection; 0 = no limit */
    uint32_t handshakes_max; /* simultaneous; above: the connection with the oldest one is closed */
    bool keep_alive;
    bool times;                                      /* take the times of requests, for logs */
    bool notify_accept, notify_client, notify_close; /* call on_accept; on_client; on_close */
    struct mk__trusted_proxies trusted_proxies;
    const struct mk__h2_settings *h2; /* NULL: HTTP/2 is disabled */
    struct mk_str server_line;        /* "Server: ...\r\n" or empty */
};

struct mk__conn;
struct mk__inspector;
struct mk_connection;
struct mk__h2_settings;
struct mk__proto;

/* The protocols of connections; each begins with the first. */
enum { MK__PROTO_H1, MK__PROTO_H2, MK__PROTOS };

/* A protocol that connections may use. */
struct mk__proto_entry {
    const struct mk__proto *proto; /* NULL: find() returns it */
    struct mk_str alpn;            /* its name in ALPN */
    /* Returns the protocol; NULL: it is not in this build. Called when the first connection of a thread needs it. */
    const struct mk__proto *(*find)(void);
    /* Tells whether connections may switch to it. */
    bool (*is_enabled)(const struct mk__http_settings *settings);
    /* Tells whether `in`, the first bytes of a connection, begins this protocol. */
    enum mk__preface (*recognize)(struct mk_str in);
};

/* A protocol, as the connections of one thread use it. */
struct mk__proto_use {
    const struct mk__proto *proto; /* NULL until a connection needs it */
    void *shared;                  /* its data for all connections, or NULL */
};

struct mk__http_app {
    /* An exchange begins. Its head may turn out to be malformed. */
    void (*on_init)(struct mk_request *req, void *ctx);
    /* The head is well-formed. Finds the host; may set `app_data` and `limits`. */
    void (*on_head)(struct mk_request *req, void *ctx);
    /* Returns what a handler of the host makes of a path with an encoded slash (enum). May be NULL: it is refused. */
    int (*accepts_encoded_slash)(const struct mk_request *req, struct mk_str path, void *ctx);
    /* The request is to be answered, now or later. */
    void (*on_request)(struct mk_request *req, void *ctx);
    /* The head of the response is about to be sent; may change it. */
    void (*on_response)(struct mk_request *req, void *ctx);
    /* The exchange is over; its memory is released afterwards. */
    void (*on_done)(struct mk_request *req, void *ctx);
    /* The exchange has been freed, or what held its worker has ended; `worker` is its member of that name. */
    void (*on_free)(void *worker);
    /* Holds the worker of an exchange beyond its end, until on_free() is called once more. */
    void (*hold_worker)(void *worker);
    /* HandlerTimeout has passed; a 503 follows, or the connection is closed. May be NULL. */
    void (*on_handler_timeout)(struct mk_request *req, void *ctx);
    struct mk_str (*mime)(const struct mk_request *req, struct mk_str path, void *ctx);
    uint64_t (*mime_id)(const struct mk_request *req, void *ctx);
    /* A connection has been closed, and with it its descriptor. */
    void (*on_conn_freed)(void *ctx);
    /* With settings->notify_accept: a connection was accepted. Returns 0, or -errno to close it at once. */
    int (*on_accept)(struct mk_connection *conn, void *ctx);
    /* With settings->notify_client: the client is known. Returns 0, or -errno to close the connection. */
    int (*on_client)(struct mk_connection *conn, void *ctx);
    /*
     * With settings->notify_close, or for a connection that has states of plugins: it is being closed. Not called for
     * those that on_accept refused.
     */
    void (*on_close)(struct mk_connection *conn, void *ctx);
    /* Connections begin with the first one, which has only `proto`, and may switch to the others. */
    struct mk__proto_entry protos[MK__PROTOS];
    /* Returns the proxies that are trusted to name the client of a request. */
    const struct mk__trusted_proxies *(*trusted_proxies)(const struct mk_request *req);
};

enum {
    MK__OUT_BYTES = 32 * 1024,  /* the size of the output buffer */
    MK__READ_BYTES = 16 * 1024, /* the least room for a read after a full head */
    MK__DATE_LINES_BYTES = 128,
    /* of the head of a response: clients accept no more either */
    MK__RESPONSE_HEAD_BYTES_MAX = 64 * 1024,
};

/* The status line that most HTTP/1 responses have. */
#define MK__OK_LINE "HTTP/1.1 200 OK\r\n"

/* How far the shutdown of the thread is. It only moves forward; a thread that is retired skips ANNOUNCED. */
enum mk__shutdown {
    MK__SHUTDOWN_NONE,
    MK__SHUTDOWN_ANNOUNCED, /* ShutdownDelay: requests are served, and health checks fail */
    MK__SHUTDOWN_RETIRING,  /* connections end after their next response, or by their timeouts */
    MK__SHUTDOWN_DRAINING,  /* idle connections have ended, the others end after their next response */
};

struct mk__context {
    struct mk_loop *loop;
    const struct mk__http_settings *settings;
    const struct mk__http_app *app;
    void *app_ctx;
    struct mk_account *account;
    mk__cell *cells;                          /* of the thread, for counters; may be NULL */
    const struct mk_counter *const *counters; /* with `cells`: by enum mk__http_count (http/count.h) */
    struct mk__pool connections, requests;
    struct mk_list conns;            /* the oldest first */
    struct mk__inspector *inspector; /* NULL: nothing looks at them */
    uint8_t shutdown;                /* enum mk__shutdown */
    bool accept_in_drain;            /* connections are accepted during the drain, which does not wait for them */
    uint32_t conns_in_drain;         /* the number of these connections */
    uint32_t settings_version;       /* counts the changes of `settings` */
    uint64_t warned_ms;              /* when a refused peer or a missing PROXY header was last logged */
    struct mk__proto_use protos[MK__PROTOS]; /* in the order of app->protos */
    struct mk_list handshaking;              /* connections in the state HANDSHAKE, the oldest first */
    uint32_t handshakes;                     /* the length of this list */
    uint32_t handshake_steps;                /* taken in turn `handshake_turn` of the loop */
    uint64_t handshake_turn;
    uint64_t reads;                 /* of input: mk_request_arrival() */
    struct mk_list handshake_queue; /* connections that wait for a handshake step, by task.node */
    struct mk_task handshake_task;  /* takes the steps of the queue, at the end of a turn */
    struct mk_task *handshake_step; /* the one of the queue that runs now, or NULL */
    struct mk__scratch in, out;
    struct mk_head_parser parse; /* of the head that is read in this turn */
    struct mk__host_memo host_memo;
    uint64_t head_since_us; /* when its first byte was read; 0: not yet */
    struct mk_field *fields;
    uint32_t fields_max;
    int64_t date_seconds; /* of ok_lines */
    uint8_t ok_lines_len;
    char ok_lines[sizeof(MK__OK_LINE) + MK__DATE_LINES_BYTES]; /* MK__OK_LINE "Server: ...\r\nDate: ...\r\n" */
    struct mk__random_pool random;                             /* for request IDs */
    struct mk__recent_windows recent_windows;
};

/* Larger buffers for new settings; NULL and 0 where the present ones are large enough. */
struct mk__context_buffers {
    char *in;
    size_t in_bytes;
    struct mk_field *fields;
    uint32_t fields_max;
};

/* Any thread, as long as the settings of `http` do not change meanwhile. Returns 0 or -ENOMEM. */
int mk__context_alloc_buffers(const struct mk__context *http, const struct mk__http_settings *settings,
                              struct mk__context_buffers *ret);
void mk__context_free_buffers(struct mk__context_buffers *b);

static inline void mk__context_advance_shutdown(struct mk__context *http, enum mk__shutdown shutdown)
{
    if (http->shutdown < shutdown)
        http->shutdown = (uint8_t)shutdown;
}

/* Tells whether connections end after their next response. */
static inline bool mk__context_ends_conns(const struct mk__context *http)
{
    return http->shutdown >= MK__SHUTDOWN_RETIRING;
}

/* Tells whether a connection may carry another request after the current response, as far as its thread decides it. */
static inline bool mk__context_keeps_alive(const struct mk__context *http)
{
    return http->settings->keep_alive && !mk__context_ends_conns(http);
}

/* Tells whether three quarters of the budget are used; idle connections with much memory are closed then. */
static inline bool mk__context_is_low_on_memory(const struct mk__context *http)
{
    return http->account->bytes_max && http->account->bytes > http->account->bytes_max / 4 * 3;
}

/* Returns the Server and Date lines of a response. Valid until the next call. */
struct mk_str mk__context_date_lines(struct mk__context *http);
/* Returns the value of Date. */
struct mk_str mk__context_date(struct mk__context *http);
/* Returns the same after MK__OK_LINE. */
struct mk_str mk__context_ok_lines(struct mk__context *http);

#endif

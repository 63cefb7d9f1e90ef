// SPDX-License-Identifier: Apache-2.0
/*
 * What HTTP needs to know of one worker: its settings (a struct, not a configuration), its consumer
 * (callbacks, not a server), its memory and its scratch buffers. Protocols (h1) and the exchange (request,
 * response) share it.
 */
#ifndef MK_HTTP_CONTEXT_H
#define MK_HTTP_CONTEXT_H

#include <monkey/buf.h>
#include <monkey/request.h>

#include "base/pool.h"
#include "http/client_addr.h"
#include "http/h2/flood.h"
#include "http/message/parse.h"
#include "net/sock.h"

/* Every wait of a connection has a limit of its own. */
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

/* What an exchange is held to; whom it is for may have limits of its own. */
struct mk__http_limits {
    uint32_t timeout_ms[MK__TIMEOUTS];
    uint64_t body_bytes_max;    /* any body: 413 */
    uint64_t collect_bytes_max; /* a body collected in memory: 413 */
    uint64_t discard_bytes_max; /* read away after an answer that did not want the body */
    uint64_t body_rate_min;     /* bytes per second, after a grace of a few seconds; 0 = none */
};

struct mk__http_settings {
    struct mk__parse_limits head;
    struct mk__http_limits limits;
    uint64_t requests_max;   /* per connection; 0 = no limit */
    uint32_t handshakes_max; /* connections that may be amid theirs: the oldest gives way */
    bool keep_alive;
    bool times;                       /* somebody wants to know how long requests take */
    bool notify_accept, notify_close; /* somebody wants to see each connection when it comes; when it goes */
    struct mk__trusted_proxies trusted_proxies;
    const struct mk__h2_settings *h2; /* NULL: only HTTP/1 is spoken */
    struct mk_str server_line;        /* "Server: ...\r\n" or empty */
};

struct mk__h2_ops;

struct mk__http_app {
    /* An exchange begins, perhaps with a head that nobody can read. */
    void (*on_init)(struct mk_request *req, void *ctx);
    /* The head can be read: whom is it for? May set `app_data` and `limits`. */
    void (*on_head)(struct mk_request *req, void *ctx);
    /* The head is good: answer, or arrange for an answer. */
    void (*on_request)(struct mk_request *req, void *ctx);
    /* The response's head is about to leave. */
    void (*on_response)(struct mk_request *req, void *ctx);
    /* The exchange is over; its memory is released afterwards. */
    void (*on_done)(struct mk_request *req, void *ctx);
    /* And nothing of it is left but `worker`. */
    void (*on_free)(void *worker);
    /* A handler has said nothing for longer than it may: it is answered for, or cut off. May be NULL. */
    void (*on_handler_timeout)(struct mk_request *req, void *ctx);
    struct mk_str (*mime)(const struct mk_request *req, struct mk_str path, void *ctx);
    /* A connection is gone, its descriptor free. */
    void (*on_conn_freed)(void *ctx);
    /* settings->notify_accept: a connection has come. 0, or -errno: it is closed at once. */
    int (*on_accept)(struct mk_connection *conn, void *ctx);
    /* settings->notify_close: it goes. Not called for those that were refused. */
    void (*on_close)(struct mk_connection *conn, void *ctx);
    /* HTTP/2; NULL: it is not there. */
    const struct mk__h2_ops *(*load_h2)(void);
    /* Whom to believe about the client of a request. */
    const struct mk__trusted_proxies *(*trusted_proxies)(const struct mk_request *req);
};

enum {
    MK__OUT_BYTES = 32 * 1024,  /* what one write gathers */
    MK__READ_BYTES = 16 * 1024, /* what one read takes at least */
    MK__DATE_LINES_BYTES = 128,
};

struct mk__context {
    struct mk_loop *loop;
    const struct mk__http_settings *settings;
    const struct mk__http_app *app;
    void *app_ctx;
    struct mk_account *account;
    struct mk__pool connections, requests;
    struct mk_list conns; /* connections */
    bool draining;
    bool retiring;               /* connections end with their next answer, or by themselves */
    bool stopping;               /* it will drain soon, and says so to those who ask */
    bool accept_in_drain;        /* connections may come during the drain, which does not wait for them */
    uint32_t conns_in_drain;     /* so many of these there are */
    uint32_t settings_version;   /* of settings, so far */
    uint64_t warned_ms;          /* about those who connect where only proxies may, or who are none */
    const struct mk__h2_ops *h2; /* NULL: nobody has spoken it yet */
    void *h2_shared;             /* its own, of all connections */
    struct mk_list handshaking;  /* connections amid their handshakes, the oldest first */
    uint32_t handshakes;         /* so many */
    uint32_t handshake_steps;    /* of handshakes, in this turn of the loop: */
    uint64_t handshake_turn;
    struct mk_list handshake_queue;    /* connections whose handshakes wait for a step, by task.node */
    struct mk_task handshake_task;     /* takes steps from the queue, at the end of a turn */
    struct mk__conn *handshaking_conn; /* whose turn it is; NULL: none */
    struct mk__scratch in, out;
    struct mk__parse parse; /* of the head that is being read in this turn */
    uint64_t head_since_us; /* when its first byte was seen; 0: not yet */
    struct mk__field *fields;
    uint32_t fields_max;
    int64_t date_seconds; /* of date_lines */
    uint8_t date_lines_len;
    char date_lines[MK__DATE_LINES_BYTES]; /* "Server: ...\r\nDate: ...\r\n" */
};

/* 0 or -ENOMEM. What the pointers point to must outlive `http`. */
int mk__context_init(struct mk__context *http, struct mk_loop *loop, const struct mk__http_settings *settings,
                     const struct mk__http_app *app, void *app_ctx, struct mk_account *account);
/* Larger buffers, where other settings need them; NULL and 0 where they do not. */
struct mk__context_buffers {
    char *in;
    size_t in_bytes;
    struct mk__field *fields;
    uint32_t fields_max;
};

/* In any thread, while nobody else adopts settings. 0 or -ENOMEM. */
int mk__context_alloc_buffers(const struct mk__context *http, const struct mk__http_settings *settings,
                              struct mk__context_buffers *ret);
void mk__context_free_buffers(struct mk__context_buffers *b);
/* Between two turns of connections: the settings are in use from now on, the buffers are taken. */
void mk__context_apply_settings(struct mk__context *http, const struct mk__http_settings *settings,
                                struct mk__context_buffers *b);

/* No connection may live any more. */
void mk__context_release(struct mk__context *http);

static inline bool mk__context_wants_times(const struct mk__context *http)
{
    return !MK_SMALL && http->settings->times;
}

/* Is memory too dear for idle sessions of HTTP/2? They hold a lot for what they do. */
static inline bool mk__context_is_low_on_memory(const struct mk__context *http)
{
    return http->account->bytes_max && http->account->bytes > http->account->bytes_max / 4 * 3;
}

/* The lines that every response carries, formatted once a second. */
struct mk_str mk__context_date_lines(struct mk__context *http);

#endif

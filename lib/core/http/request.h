// SPDX-License-Identifier: Apache-2.0
/*
 * An exchange: one request and its response, over any protocol. It reaches its connection through struct
 * mk__request_ops only, because an HTTP/2 connection carries several exchanges at a time.
 *
 *     request:   head read ─► enum mk__body_state
 *     response:  of the handler: enum mk__response_state; of the protocol: enum mk__output_state
 *
 * Lifetime: from the last byte of the request head until the last byte of the response has been passed to the socket.
 * In its first turn `base` and `fields` point into the scratch buffer of the thread; an exchange that has to wait
 * copies them into its arena. All in the thread of the connection.
 */
#ifndef MK_HTTP_REQUEST_H
#define MK_HTTP_REQUEST_H

#include <monkey/base/chunked.h>
#include <monkey/request.h>

#include "http/message/request_head.h"
#include "http/context.h"

#include <assert.h>

enum {
    MK__REQUEST_BYTES = 1024,
    MK__REQUEST_ARENA_MAX = 256 * 1024,
    MK__HEADERS_INLINE = 4,
    MK__HEADERS_MAX = 128,
    MK__TRAILERS_MAX = 16,
};

/* Above this many queued bytes the write functions return MK_AGAIN. */
enum { MK__QUEUED_BYTES_HIGH = 64 * 1024 };

struct mk__request_ops {
    uint8_t major; /* of the HTTP version */
    /* Schedules a turn: a part was queued, the body is wanted, or the response has ended. */
    void (*wake)(struct mk_request *req);
    /*
     * Returns true in a turn of the connection at whose end mk__request_keep() is called for an exchange that
     * continues. NULL: never.
     */
    bool (*in_turn)(const struct mk_request *req);
    /* Return the connection of the request, as transports and as plugins see it. */
    const struct mk_io *(*io)(const struct mk_request *req);
    struct mk_connection *(*conn)(const struct mk_request *req);
    /*
     * For an exchange that was taken over. Return the number of bytes, 0 at the end (read), -EAGAIN or another
     * -errno.
     */
    ssize_t (*read)(struct mk_request *req, void *to, size_t size);
    ssize_t (*write)(struct mk_request *req, const void *from, size_t size);
    int (*shutdown)(struct mk_request *req);
    /* Schedules a call of the ready() function of the tunnel, even from within it. */
    void (*wake_tunnel)(struct mk_request *req);
    /* The time of HANDLER has changed: schedules a turn, at whose end the timer of the exchange starts again. */
    void (*restart_timer)(struct mk_request *req);
};

enum mk__part_kind { MK__PART_MEMORY, MK__PART_FILE, MK__PART_GENERATOR };

struct mk__part {
    struct mk__part *next;
    uint8_t kind;       /* enum mk__part_kind */
    bool chunk_started; /* the chunk line of a file part has been written */
    bool gathers;       /* memory: bytes can be added in what is left of `heap` */
    bool borrowed;      /* file: the descriptor belongs to the owner of the file */
    int fd;             /* file: owned; -1 while a disk thread reads or an earlier part has it */
    size_t cost;        /* its share of queued_bytes */
    char *heap;         /* memory: owned, of heap_bytes; or NULL */
    size_t heap_bytes;
    union {
        const char *data;
        mk_generate_fn generate;
        uint64_t version; /* file: of mk_file_version(); 0: unknown */
    };
    union {
        void *ctx;                /* generator */
        struct mk__part *fd_heir; /* file: the later part that takes the descriptor over, or NULL */
    };
    union {
        uint64_t at;         /* file: offset of the next byte */
        mk_splice_fn splice; /* generator: NULL, or moves its bytes to the socket */
    };
    uint64_t left;
    uint64_t cached_until; /* file: known to be in the page cache up to here */
};

/* The fields of the trailer section. */
struct mk__trailers {
    unsigned n;
    struct mk_header_field items[MK__TRAILERS_MAX];
};

/* The values of several field lines with one name, as one; in the arena. */
struct mk__joined_lines {
    struct mk__joined_lines *next;
    unsigned first; /* of the lines */
    size_t len;
    char bytes[];
};

/* What mk_request_rewrite() has made of path and query; in the arena. */
struct mk__rewritten {
    struct mk_str original, query; /* the path of the client; the query that replaces its query, `.p` NULL: none */
    struct mk_str decided;         /* another path that access was decided for; `.p` NULL: none */
    unsigned n;                    /* times */
    unsigned decisions;            /* how often mk_request_decide_access() has asked */
    unsigned resumed;              /* mk_request_decide_access(): the hook to continue with; 0: an internal redirect */
    bool decides_access;           /* the hooks that decide about access are called for another path */
};

struct mk__extra;
struct mk__file_read_job;

/* How far the request body is. Up to DISCARDING more of it may come, from DONE on none is passed on. */
enum mk__body_state {
    MK__BODY_STATE_READING,
    MK__BODY_STATE_PAUSED,     /* by the handler */
    MK__BODY_STATE_DISCARDING, /* the response is complete */
    MK__BODY_STATE_DONE,       /* all of it was received */
    MK__BODY_STATE_FAILED,     /* the request or its body was rejected: the handler gets no end */
};

/* What the handler has made of the response. It only moves forward, but for mk_response_replace(). */
enum mk__response_state {
    MK__RESPONSE_OPEN,   /* headers and parts may be added */
    MK__RESPONSE_ENDED,  /* all parts are queued */
    MK__RESPONSE_FAILED, /* it cannot be completed */
};

/* What the protocol has sent of the response. */
enum mk__output_state {
    MK__OUTPUT_NONE,
    MK__OUTPUT_HOOKED,   /* the response hooks have run */
    MK__OUTPUT_HEAD,     /* the head was passed to the connection */
    MK__OUTPUT_COMPLETE, /* all of it was; the request body may be incomplete */
};

/* How a client finds the end of the response body. */
enum mk__framing {
    MK__FRAMING_NONE,    /* not decided yet; or by the end of the connection or of the stream */
    MK__FRAMING_LENGTH,  /* by Content-Length */
    MK__FRAMING_CHUNKED, /* by the last chunk */
};

struct mk_request {
    const struct mk__request_ops *ops;
    void *connection;
    struct mk__context *http;
    const struct mk__http_limits *limits;
    void *worker;            /* of the server: passed to on_free() */
    uint32_t ref;            /* of the server: the slot of its references, from 1; 0: it has none */
    const void *app_data;    /* of the server: the host; NULL until on_head() */
    void **plugin_states;    /* of the server: one for each plugin; NULL until one is set */
    unsigned hook, hook_end; /* of the server: the next call of a plugin's hook, and the end of those to make */

    /* the request */
    uint64_t began_us;
    struct mk_str user, claims, id; /* NULL until set, or first asked for */
    uint16_t access;                /* as mk_request_access() returns it */
    uint16_t appended_bytes;        /* of headers that a plugin has set, after the head */
    bool defers_denial;
    bool client_known, is_https; /* valid with client_known */
    uint8_t reason;              /* enum mk_reason */
    const char *base;
    const struct mk_field *fields;
    struct mk_head_parser parse;
    struct mk__request_head head;
    struct mk__joined_lines *joined; /* or NULL */
    struct mk_str path;
    struct mk__rewritten *rewritten; /* or NULL */

    /* its body */
    uint8_t body_state; /* enum mk__body_state */
    bool continue_sent, head_copied;
    bool trailers_dropped;
    bool continue_held;     /* a 100 is sent only when the handler asks for it */
    bool ends_with_client;  /* when it ends its side while the handler works */
    bool has_encoded_slash; /* in `path`, as "%2F" */
    struct mk_chunked chunked;
    uint64_t body_left, body_bytes;
    uint64_t rate_bytes, rate_since_ms; /* for MinBodyRate: bytes received since then */
    mk_body_fn body_fn;
    void *body_ctx;

    /* the response */
    uint16_t status;
    uint8_t response_state; /* enum mk__response_state */
    uint8_t output_state;   /* enum mk__output_state */
    uint8_t framing;        /* enum mk__framing */
    bool bodyless;          /* no body is sent, whatever the framing */
    bool close_wanted, is_default_error;
    bool no_ranges, no_codings;
    uint8_t headers_len, headers_max;
    uint32_t head_bytes;
    uint64_t first_byte_us;
    uint64_t length;     /* of the body, with FRAMING_LENGTH */
    uint64_t sent_bytes; /* of the body, as far as passed to the connection */
    size_t queued_bytes;
    struct mk_header_field *headers;
    const struct mk_response_block *block; /* lines in addition to `headers`; or NULL */
    uint32_t block_len;                    /* the lines of it that are sent, without Content-Length */
    const struct mk_owner *owner;          /* of `owned`: what parts and block refer to; NULL: nothing */
    void *owned;
    bool holds_owned;     /* a reference was taken */
    bool writable_wanted; /* writable_fn is to be called */
    struct mk__part *first, *last, *free_parts;
    mk_writable_fn writable_fn;
    void *writable_ctx;
    struct mk__file_read_job *file_read; /* a disk thread reads for the first part; or NULL */
    struct mk_filter *filter;            /* the one added last, or NULL */
    struct mk_file *ranged_file;         /* what a 206 is a part of, or a 416 is about; or NULL */
    struct mk__tunnel *tunnel;           /* a handler has taken the connection over; or NULL */
    struct mk__trailers *trailers;       /* or NULL */
    struct mk__extra *extra;             /* or NULL */
    mk_body_splice_fn body_splice;       /* NULL, or moves bytes of the request's body from the socket */

    /* not zeroed when the exchange begins */
    struct mk_address client; /* valid with client_known */
    struct mk_arena arena;
    _Alignas(16) char storage[];
};

/* Creates an exchange with an empty head and status 200, and calls on_init(). Returns NULL without memory. */
struct mk_request *mk__request_new(struct mk__context *http, const struct mk__request_ops *ops, void *connection);
/*
 * Begins the exchange after its head: finds the host, and lets the request be answered. A `status` other than 0 rejects
 * it. `body_ended`: no body follows, whatever the head says.
 */
void mk__request_begin(struct mk_request *req, int status, bool body_ended);
/* Answers with an error of the server itself, and counts it. */
void mk__request_reject(struct mk_request *req, int status);
/* Ends the exchange: calls on_done(), then frees it. */
void mk__request_finish(struct mk_request *req);
/* Frees the exchange: closes its files, runs the clean-ups of its arena, calls on_free(). */
void mk__request_free(struct mk_request *req);

/* Copies the head from the scratch buffer into the arena. Returns 0 or -ENOMEM. */
int mk__request_copy_head(struct mk_request *req);
/* As mk__request_copy_head(), and holds what the response refers to: the exchange outlives the turn of the loop. */
int mk__request_keep(struct mk_request *req);
/* Makes `owned` what parts and block of the response refer to, and holds it unless that can wait for the turn's end. */
void mk__request_borrow(struct mk_request *req, const struct mk_owner *owner, void *owned);

/* Decodes the path of the target. Returns 0 or a negative status: -400, -404 (an encoded slash), -503 (no memory). */
int mk__request_decode_path(struct mk_request *req);
/*
 * Decodes the path of a target with an encoded slash, and asks the application whether a handler accepts it. Returns 0
 * or a status: 404, with an empty path, or 503.
 */
int mk__encoded_slash_decode(struct mk_request *req);
/*
 * Decodes a path and keeps its encoded slashes, as "%2F". Returns 0, -ENOENT (a dot is next to one, or "%2F" is text,
 * or there is none) or -ENOMEM.
 */
int mk__encoded_slash_keep(struct mk_arena *arena, struct mk_str raw, struct mk_str *ret_path);

/*
 * Passes a piece of the request body to its reader, or discards it; `end` with the last piece. Rejects a body that is
 * longer than its limit.
 */
void mk__request_deliver_body(struct mk_request *req, struct mk_str piece, bool end);
/*
 * Rejects the rest of the request body: with `status`, if the head of a response was not sent, else with an abort. A
 * response that the handler has ended stays as it is, even if not all of it was sent.
 */
void mk__request_reject_body(struct mk_request *req, int status);
/* Rejects a wanted body that arrives more slowly than MinBodyRate, after a grace period of 5 seconds. */
void mk__request_check_rate(struct mk_request *req);
/*
 * Answers an exchange that has exceeded a timeout; calls on_handler_timeout() before, if it `notifies_handler`. Returns
 * false if it cannot be answered: `status` is 0, or the head of a response was sent.
 */
bool mk__request_time_out(struct mk_request *req, int status, bool notifies_handler);

/* Returns the limits of an exchange, or without one those of the settings. */
static inline const struct mk__http_limits *mk__request_get_limits(const struct mk_request *req,
                                                                   const struct mk__context *http)
{
    return req ? req->limits : &http->settings->limits;
}

/* Returns how many body bytes were received and sent. */
static inline uint64_t mk__request_count_bytes(const struct mk_request *req)
{
    return req->sent_bytes + req->body_bytes;
}

/* Returns the bytes of header lines, "name: value\r\n" for each. */
static inline size_t mk__request_count_line_bytes(const struct mk_header_field *fields, unsigned n)
{
    size_t bytes = 0;
    for (unsigned i = 0; i < n; i++)
        bytes += fields[i].name.len + fields[i].value.len + 4;
    return bytes;
}

/* Tells whether the handler takes pieces of the body now, or they are discarded. */
static inline bool mk__request_wants_body(const struct mk_request *req)
{
    return req->body_state == MK__BODY_STATE_DISCARDING || (req->body_state == MK__BODY_STATE_READING && req->body_fn);
}

/* Tells whether the client waits for a 100 before it sends its body (RFC 9110 section 10.1.1). */
static inline bool mk__request_expects_continue(const struct mk_request *req)
{
    return req->head.expects_continue && !req->continue_sent && req->output_state < MK__OUTPUT_HEAD && !req->body_bytes;
}

/* Tells whether the handler reads the body of a client that still waits for 100 (Continue), so that the client need not
 * send.
 */
static inline bool mk__request_awaits_continue(const struct mk_request *req)
{
    return req->continue_held && mk__request_expects_continue(req) && req->body_fn &&
           req->body_state == MK__BODY_STATE_READING;
}

/* Tells, once, that a 100 is to be sent. */
static inline bool mk__request_needs_continue(struct mk_request *req)
{
    if (!mk__request_expects_continue(req) || mk__request_awaits_continue(req) || !mk__request_wants_body(req))
        return false;
    req->continue_sent = true;
    return true;
}

/* MinBodyRate counts from now on: the time that the client has waited for the server is no fault of it. */
static inline void mk__request_restart_rate(struct mk_request *req)
{
    req->rate_since_ms = mk_loop_now_ms(req->http->loop);
    req->rate_bytes = 0;
}

/*
 * Queues another range of the file of `before`, which must be the last queued part of that file. The descriptor passes
 * from part to part and is closed with the last one. Returns the same as mk_response_write_file().
 */
int mk__response_write_same_file(struct mk_request *req, struct mk__part *before, uint64_t offset, uint64_t length);
/* As mk_response_write_file(), but the descriptor stays the owner's (mk__request_borrow()). */
int mk__response_write_borrowed_file(struct mk_request *req, int fd, uint64_t offset, uint64_t length);

/*
 * Reads the output of the filters, from the one added last; `size` may be less than MK_FILTER_BYTES_MIN. Returns the
 * same as an mk_filter_fn, or -EPIPE if they have ended before the parts.
 */
ssize_t mk__filter_read_output(struct mk_request *req, char *to, size_t size);
/* The queue of parts was replaced by one of `bytes`: nothing is known of the length of the filters' output. */
void mk__filter_change_input(struct mk_request *req, uint64_t bytes);
/* Begins a turn: the filters may read up to their limit again before they get -EBUSY. */
void mk__filter_begin_turn(struct mk_request *req);

/* Tells whether a handler may send a header: its name is a token that is not reserved, its value has no control byte.
 */
bool mk__response_is_valid_field(struct mk_str name, struct mk_str value);
/*
 * Adds a header that was made here, whose name and value need no check. The value is kept by reference. Returns 0,
 * -EALREADY or -ENOMEM, as mk_response_header_ref() does.
 */
int mk__response_add_header(struct mk_request *req, struct mk_str name, struct mk_str value);
/* Adds the lines of a block, and sets the length. They are valid as long as what the response has borrowed. */
void mk__response_set_block(struct mk_request *req, const struct mk_response_block *block);
/* Removes the lines of the block that describe the content. */
void mk__response_drop_block_content(struct mk_request *req);
/* Returns the lines of the block; empty: none. */
static inline struct mk_str mk__request_block_lines(const struct mk_request *req)
{
    return req->block ? mk_str(req->block->text.p, req->block_len) : MK_STR("");
}
/* Calls the response hooks, if that was not done before. The head is sent next. */
void mk__response_run_hooks(struct mk_request *req);
/* Decides whether the response has a body, and its length. The response hooks have run. */
void mk__response_decide_body(struct mk_request *req);
/* Removes the first part of the queue and frees what it owns. */
void mk__response_drop_part(struct mk_request *req);
/* Removes all parts. */
void mk__response_drop_parts(struct mk_request *req);
/* Calls the on_writable function. Only if mk__request_wants_writable(). */
void mk__response_call_writable(struct mk_request *req);
/* Replaces the response by a status without headers and body. Only before its head is sent. */
void mk__response_reset_to_status(struct mk_request *req, int status);

/* Tells whether the handler waits for its on_writable function. */
static inline bool mk__request_wants_writable(const struct mk_request *req)
{
    return req->response_state == MK__RESPONSE_OPEN && req->writable_wanted && req->writable_fn;
}

/* The head has been passed to the connection. */
static inline void mk__request_set_head_sent(struct mk_request *req)
{
    assert(req->output_state == MK__OUTPUT_HOOKED);
    req->output_state = MK__OUTPUT_HEAD;
    if (req->http->settings->times)
        req->first_byte_us = mk_loop_now_us(req->http->loop);
}

/* Tells whether `bytes` more would exceed the length of the body: the client would take them for the next response. */
static inline bool mk__request_exceeds_length(const struct mk_request *req, uint64_t bytes)
{
    return req->framing == MK__FRAMING_LENGTH && bytes > req->length - req->sent_bytes;
}

/* Tells whether the body, which has ended, is shorter than its length. */
static inline bool mk__request_misses_length(const struct mk_request *req)
{
    return req->framing == MK__FRAMING_LENGTH && req->sent_bytes < req->length;
}

/* `n` bytes of a memory or file part were taken. */
static inline void mk__part_advance(struct mk__part *part, size_t n)
{
    assert(part->kind != MK__PART_GENERATOR && n <= part->left);
    if (part->kind == MK__PART_MEMORY)
        part->data += n;
    part->left -= n;
    part->at += n;
}

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * An exchange: one request and its response, over any protocol. It reaches its connection through struct
 * mk__request_ops only, because an HTTP/2 connection carries several exchanges at a time.
 *
 *     request:   HEAD read ─► body: NONE or READING ─► DONE
 *     response:  OPEN (status, headers, parts may be added) ─► head sent ─► ended ─► all parts sent
 *
 * Lifetime: from the last byte of the request head until the last byte of the response has been passed to the socket.
 * In its first turn `base` and `fields` point into the scratch buffer of the thread; an exchange that has to wait
 * copies them into its arena. All in the thread of the connection.
 */
#ifndef MK_HTTP_REQUEST_H
#define MK_HTTP_REQUEST_H

#include <monkey/request.h>

#include "http/message/chunked.h"
#include "http/message/request_head.h"
#include "http/context.h"

enum {
    MK__REQUEST_BYTES = 1024,
    MK__REQUEST_ARENA_MAX = 256 * 1024,
    MK__HEADERS_INLINE = 8,
    MK__HEADERS_MAX = 64,
    MK__TRAILERS_MAX = 16,
};

/* Above this many queued bytes the write functions return MK_AGAIN. */
enum { MK__QUEUED_BYTES_HIGH = 64 * 1024 };

struct mk__request_ops {
    uint8_t major; /* of the HTTP version */
    /* Schedules a turn: a part was queued, the body is wanted, or the response has ended. */
    void (*wake)(struct mk_request *req);
    /* Returns the connection of the request. */
    const struct mk_io *(*io)(const struct mk_request *req);
    /*
     * For an exchange that was taken over. Return the number of bytes, 0 at the end (read), -EAGAIN or another
     * -errno.
     */
    ssize_t (*read)(struct mk_request *req, void *to, size_t size);
    ssize_t (*write)(struct mk_request *req, const void *from, size_t size);
    int (*shutdown)(struct mk_request *req);
    /* Schedules a call of the ready() function of the tunnel, even from within it. */
    void (*wake_tunnel)(struct mk_request *req);
    struct mk__peer *(*peer)(const struct mk_request *req);
};

enum mk__part_kind { MK__PART_MEMORY, MK__PART_FILE, MK__PART_GENERATOR };

struct mk__part {
    struct mk__part *next;
    uint8_t kind;       /* enum mk__part_kind */
    bool chunk_started; /* the chunk line of a file part has been written */
    int fd;             /* file: owned; -1 while a disk thread reads or an earlier part has it */
    size_t cost;        /* its share of queued_bytes */
    char *heap;         /* memory: owned, of heap_bytes; or NULL */
    size_t heap_bytes;
    union {
        const char *data;
        mk_generate_fn generate;
    };
    union {
        void *ctx;                /* generator */
        struct mk__part *fd_heir; /* file: the later part that takes the descriptor over, or NULL */
    };
    uint64_t at; /* file: offset of the next byte */
    uint64_t left;
    uint64_t cached_until; /* file: known to be in the page cache up to here */
};

struct mk__header {
    struct mk_str name, value;
};

/* The fields of the trailer section. */
struct mk__trailers {
    unsigned n;
    struct mk__header items[MK__TRAILERS_MAX];
};

struct mk__file_read_job;

struct mk_request {
    const struct mk__request_ops *ops;
    void *connection;
    struct mk__context *http;
    const struct mk__http_limits *limits;
    void *worker;            /* of the server: passed to on_free() */
    const void *app_data;    /* of the server: the host; NULL until on_head() */
    unsigned hook, hook_end; /* of the server: the next hook, and the end of those to run */

    /* the request */
    uint64_t began_us;
    struct mk_str user, id; /* NULL until set, or first asked for */
    struct mk_address client;
    bool client_known, is_https; /* valid with client_known */
    const char *base;
    const struct mk__field *fields;
    struct mk__parse parse;
    struct mk__request_head head;
    struct mk_str path;

    /* its body */
    bool body_done, body_failed, body_paused, body_discard, continue_sent, head_copied, aborted;
    struct mk__chunked chunked;
    uint64_t body_left, body_bytes;
    uint64_t rate_bytes, rate_since_ms; /* for MinBodyRate: bytes received since then */
    mk_body_fn body_fn;
    void *body_ctx;

    /* the response */
    uint16_t status;
    bool ended, head_sent, is_chunked, bodyless, length_known, failed, response_hooked, close_wanted, is_default_error;
    bool not_modified; /* a 304 that has the headers of the 200 until its head is sent */
    bool complete;     /* all of it was passed to the connection; the request body may be incomplete */
    uint8_t headers_len, headers_max;
    uint32_t head_bytes;
    uint64_t first_byte_us;
    uint64_t length;     /* of the body, if length_known */
    uint64_t sent_bytes; /* of the body, as far as passed to the connection */
    size_t queued_bytes;
    struct mk__header *headers;
    struct mk__part *first, *last, *free_parts;
    mk_writable_fn writable_fn;
    void *writable_ctx;
    bool writable_wanted;
    struct mk__file_read_job *file_read; /* a disk thread reads for the first part; or NULL */
    struct mk_filter *filter;            /* the one added last, or NULL */
    struct mk__tunnel *tunnel;           /* a handler has taken the connection over; or NULL */
    struct mk__trailers *trailers;       /* or NULL */

    struct mk_arena arena;
    _Alignas(16) char storage[];
};

/* Creates an exchange with an empty head and status 200, and calls on_init(). Returns NULL without memory. */
struct mk_request *mk__request_new(struct mk__context *http, const struct mk__request_ops *ops, void *connection);
/* Frees the exchange: closes its files, runs the clean-ups of its arena, calls on_free(). */
void mk__request_free(struct mk_request *req);

/* Copies the head from the scratch buffer into the arena. Returns 0 or -ENOMEM. */
int mk__request_copy_head(struct mk_request *req);

/* Decodes the path of the target. Returns 0 or a negative status: -400, -404 (an encoded slash), -503 (no memory). */
int mk__request_decode_path(struct mk_request *req);

/* Passes a piece of the request body to its reader; `end` with the last piece. */
void mk__request_deliver_body(struct mk_request *req, struct mk_str piece, bool end);

/* Tells whether the body arrives more slowly than MinBodyRate, after a grace period of 5 seconds. */
bool mk__request_body_is_slow(const struct mk_request *req);

/*
 * Queues another range of the file of `before`, which must be the last queued part of that file. The descriptor passes
 * from part to part and is closed with the last one. Returns the same as mk_response_write_file().
 */
int mk__response_write_same_file(struct mk_request *req, struct mk__part *before, uint64_t offset, uint64_t length);

/* Small builds have no plugin that takes connections over or sends trailers. */
enum { MK__TUNNELS = !MK_SMALL, MK__TRAILERS = !MK_SMALL };

static inline const struct mk__trailers *mk__request_trailers(const struct mk_request *req)
{
    return MK__TRAILERS ? req->trailers : NULL;
}

static inline bool mk__request_is_filtered(const struct mk_request *req)
{
    return MK_HAS_FILTERS && req->filter;
}

/* Reads the output of the filters, from the one added last. Returns the same as an mk_filter_fn. */
ssize_t mk__filter_read_output(struct mk_request *req, char *to, size_t size);
/* Begins a turn: the filters may read up to their limit again before they get -EBUSY. */
void mk__filter_begin_turn(struct mk_request *req);

/* Calls the response hooks, if that was not done before. The head is sent next. */
void mk__response_run_hooks(struct mk_request *req);
/* Removes the first part of the queue and frees what it owns. */
void mk__response_drop_part(struct mk_request *req);
/* Replaces the response by a status without headers and body. Only before its head is sent. */
void mk__response_reset_to_status(struct mk_request *req, int status);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * The exchange from the inside. It knows its carrier (HTTP/1 now) by two calls only, so that one connection
 * may carry many.
 *
 *     request:   HEAD read ─► body: NONE or READING ─► DONE
 *     response:  OPEN (status, fields, parts may be added) ─► head sent ─► ended ─► all parts sent
 *
 * Life: from the head's last byte until the last byte of the answer has been handed over. While its turn
 * lasts, `base` and `fields` point into the worker's scratch; an exchange that waits takes a right-sized
 * copy into its arena.
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

/* Above this many queued bytes a handler is asked to wait. */
enum { MK__QUEUED_BYTES_HIGH = 64 * 1024 };

struct mk__protocol {
    uint8_t major; /* version of HTTP */
    /* Something changed: a part was queued, a body is wanted, the response ended. */
    void (*wake)(struct mk_request *req);
    /* The connection that the request came by. */
    const struct mk_io *(*io)(const struct mk_request *req);
    /* Of an exchange that was taken over: the count, 0 for the end (read), -EAGAIN, -errno. */
    ssize_t (*read)(struct mk_request *req, void *to, size_t size);
    ssize_t (*write)(struct mk_request *req, const void *from, size_t size);
    int (*shutdown)(struct mk_request *req);
    /* Its ready() is to be called once more, even if it is running right now. */
    void (*wake_tunnel)(struct mk_request *req);
    struct mk__peer *(*peer)(const struct mk_request *req);
};

enum mk__part_kind { MK__PART_MEMORY, MK__PART_FILE, MK__PART_GENERATOR };

struct mk__part {
    struct mk__part *next;
    uint8_t kind;       /* enum mk__part_kind */
    bool chunk_started; /* the chunk line of a file part has been written */
    int fd;             /* file: ours */
    size_t cost;        /* towards MK__QUEUED_BYTES_HIGH */
    char *heap;         /* memory: ours to free (heap_bytes), or NULL */
    size_t heap_bytes;
    union {
        const char *data;
        mk_generate_fn generate;
    };
    union {
        void *ctx;                /* generator */
        struct mk__part *fd_heir; /* file: a later part that takes the descriptor over, or NULL */
    };
    uint64_t at; /* file: offset of the next byte */
    uint64_t left;
    uint64_t cached_until; /* file: known to be in the page cache up to here */
};

struct mk__header {
    struct mk_str name, value;
};

/* Fields behind the body. */
struct mk__trailers {
    unsigned n;
    struct mk__header items[MK__TRAILERS_MAX];
};

struct mk__file_read_job;

struct mk_request {
    const struct mk__protocol *protocol;
    void *connection;
    struct mk__context *http;
    const struct mk__http_limits *limits;
    void *worker;            /* the consumer's: what it needs until its end */
    const void *app_data;    /* the consumer's: whom it is for; NULL until that is known */
    unsigned hook, hook_end; /* the consumer's: how far the request has come, and how far it goes */

    /* the request */
    uint64_t began_us;
    struct mk_str user, id; /* NULL until set, or asked for */
    struct mk_address client;
    bool client_known, is_https; /* once somebody has asked */
    const char *base;
    const struct mk__field *fields;
    struct mk__parse parse;
    struct mk__request_head head;
    struct mk_str path;

    /* its body */
    bool body_done, body_failed, body_paused, body_discard, continue_sent, head_copied, aborted;
    struct mk__chunked chunked;
    uint64_t body_left, body_bytes;
    uint64_t rate_bytes, rate_since_ms; /* how fast it comes, while somebody reads it */
    mk_body_fn body_fn;
    void *body_ctx;

    /* the response */
    uint16_t status;
    bool ended, head_sent, is_chunked, bodyless, length_known, failed, response_hooked, close_wanted, is_default_error;
    bool not_modified; /* it still has the fields of the 200, until its head leaves */
    bool complete;     /* all of it has been handed over; only the request's body may still be on its way */
    uint8_t headers_len, headers_max;
    uint32_t head_bytes;
    uint64_t first_byte_us;
    uint64_t length;     /* announced */
    uint64_t sent_bytes; /* of the body, as far as handed to the stream */
    size_t queued_bytes;
    struct mk__header *headers;
    struct mk__part *first, *last, *free_parts;
    mk_writable_fn writable_fn;
    void *writable_ctx;
    bool writable_wanted;
    struct mk__file_read_job *file_read; /* a disk thread reads for the first part */
    struct mk_filter *filter;            /* the last one, or NULL */
    struct mk__tunnel *tunnel;           /* of the handler that has taken it over, or NULL */
    struct mk__trailers *trailers;       /* NULL: there are none */

    struct mk_arena arena;
    _Alignas(16) char storage[];
};

/* A request of `http` with an empty head, answering with 200 unless told otherwise. NULL: no memory. */
struct mk_request *mk__request_new(struct mk__context *http, const struct mk__protocol *protocol, void *connection);
/* Ends it: deferred clean-ups run, files are closed. */
void mk__request_free(struct mk_request *req);

/* Copies the head out of the scratch buffer; 0 or -ENOMEM. */
int mk__request_copy_head(struct mk_request *req);

/* Decodes the path. 0 or the negative status that it deserves. */
int mk__request_decode_path(struct mk_request *req);

/* One piece of the body has arrived; `end` with the last one. */
void mk__request_deliver_body(struct mk_request *req, struct mk_str piece, bool end);

/* Does its body come more slowly than MinBodyRate, after a grace of a few seconds? */
bool mk__request_body_is_slow(const struct mk_request *req);

/*
 * Queues more of the file that `before`, a file part in the queue, is the last one to read from: the descriptor
 * passes on to the new part, and is closed with the last one. Results as of mk_response_write_file().
 */
int mk__response_write_same_file(struct mk_request *req, struct mk__part *before, uint64_t offset, uint64_t length);

/* Builds for small devices have no plugin that takes connections over or sends trailers. */
enum { MK__TUNNELS = !MK_SMALL, MK__TRAILERS = !MK_SMALL };

static inline const struct mk__trailers *mk__request_trailers(const struct mk_request *req)
{
    return MK__TRAILERS ? req->trailers : NULL;
}

static inline bool mk__request_is_filtered(const struct mk_request *req)
{
    return MK_HAS_FILTERS && req->filter;
}

/* Asks the last filter: as of mk_filter_fn. */
ssize_t mk__filter_read_output(struct mk_request *req, char *to, size_t size);
/* The filters may read so much again before the next -EBUSY. */
void mk__filter_begin_turn(struct mk_request *req);

/* Calls the response hooks, once: the head is about to leave. */
void mk__response_run_hooks(struct mk_request *req);
/* Removes the first part of the queue. */
void mk__response_drop_part(struct mk_request *req);
/* The response is this status and nothing else, whatever was prepared; before its head leaves. */
void mk__response_reset_to_status(struct mk_request *req, int status);

#endif

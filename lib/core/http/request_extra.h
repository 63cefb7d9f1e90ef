// SPDX-License-Identifier: Apache-2.0
/*
 * What only some exchanges need, such as those of a proxy: interim responses that wait, a date of the origin, a wait of
 * their own, trailers of the request, notes. It is in the arena of the exchange and made when the first of these is
 * used, so that the others need no memory for it.
 */
#ifndef MK_HTTP_REQUEST_EXTRA_H
#define MK_HTTP_REQUEST_EXTRA_H

#include <monkey/base/buf.h>

#include "http/request.h"

/* An interim response that waits to be sent; on the account of the worker. */
struct mk__interim {
    struct mk__interim *next;
    size_t len;
    uint16_t status;
    char lines[]; /* "name: value\r\n" for each field */
};

struct mk__note {
    struct mk__note *next;
    struct mk_str name, value;
    size_t size; /* of the storage of `value` */
};

struct mk__extra {
    struct mk__interim *first_interim, *last_interim;
    size_t interim_bytes;          /* of all that wait */
    struct mk_str date;            /* of the origin; `.p` NULL: the server's own */
    uint32_t wait_ms;              /* instead of HandlerTimeout; 0: HandlerTimeout */
    struct mk__http_limits limits; /* with `wait_ms`: the limits of the exchange */
    struct mk__note *notes;
    unsigned n_notes;
    bool keeps_trailers;
    unsigned n_trailers;    /* over HTTP/2; the decoder of HTTP/1 counts itself */
    struct mk_buf trailers; /* "name: value\r\n" for each */
};

/* Returns it, made on first use; NULL without memory. */
struct mk__extra *mk__extra_get(struct mk_request *req);

/* Queues an interim response whose fields are valid. Returns 0, -ENOBUFS or -ENOMEM. */
int mk__interim_add(struct mk_request *req, int status, const struct mk_header_field *fields, unsigned n);
/* The protocol has sent the first interim response: frees it. */
void mk__interim_drop_first(struct mk_request *req);

/* Returns the interim response that is sent next; NULL: none. */
static inline struct mk__interim *mk__interim_first(const struct mk_request *req)
{
    return MK_UNLIKELY(req->extra != NULL) ? req->extra->first_interim : NULL;
}

static inline struct mk_str mk__interim_lines(const struct mk__interim *interim)
{
    return mk_str(interim->lines, interim->len);
}

/* Tells whether the date of an origin is sent in place of the server's. */
static inline bool mk__extra_has_date(const struct mk_request *req)
{
    return MK_UNLIKELY(req->extra != NULL) && req->extra->date.p;
}

/* The response is replaced by one of the server. */
static inline void mk__extra_reset_date(struct mk_request *req)
{
    if (req->extra)
        req->extra->date = MK_STR_NONE;
}

/* Sets the limits of the exchange, but keeps its own wait. */
void mk__extra_set_limits(struct mk_request *req, const struct mk__http_limits *limits);
/* Tells whether the exchange has its own wait. */
static inline bool mk__extra_has_wait(const struct mk_request *req)
{
    return req->extra && req->extra->wait_ms;
}

/* HTTP/2 has received a trailer: keeps it, if the handler has asked for it. */
void mk__trailers_add(struct mk_request *req, struct mk_str name, struct mk_str value);

#endif

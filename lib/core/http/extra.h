// SPDX-License-Identifier: Apache-2.0
/*
 * What only some exchanges need, such as those of a proxy: interim responses that wait, a date of the origin, a wait of
 * their own, trailers of the request, notes. It is in the arena of the exchange and made when the first of these is
 * used, so that the others need no memory for it. Builds for small devices leave it out.
 */
#ifndef MK_HTTP_EXTRA_H
#define MK_HTTP_EXTRA_H

#include <monkey/buf.h>

#include "http/request.h"

/* An interim response that waits to be sent; on the account of the worker. */
struct mk__interim {
    struct mk__interim *next;
    size_t len;
    uint16_t status;
    bool submitted; /* HTTP/2: nghttp2 has it, but has not sent it yet */
    char lines[];   /* "name: value\r\n" for each field */
};

struct mk__extra {
    struct mk__interim *first_interim, *last_interim;
    size_t interim_bytes; /* of all that wait */
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
    return MK__EXTRAS && MK_UNLIKELY(req->extra != NULL) ? req->extra->first_interim : NULL;
}

static inline struct mk_str mk__interim_lines(const struct mk__interim *interim)
{
    return mk_str(interim->lines, interim->len);
}

#endif

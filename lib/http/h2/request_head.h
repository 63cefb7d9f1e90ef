// SPDX-License-Identifier: Apache-2.0
/*
 * The head of an HTTP/2 request as the bytes of an HTTP/1.1 one, so that one parser (http/message/parse.h,
 * http/message/request_head.h) with one set of limits reads both. What could not be said there cannot be said here
 * either. RFC 9113 section 8.3.
 *
 *     :method GET, :path /a, :authority example.org, accept x  ─►  GET /a HTTP/1.1 CRLF host: example.org CRLF accept:
 * x ...
 *
 * An extended CONNECT (RFC 8441) becomes the GET with `Upgrade` that it stands for.
 */
#ifndef MK_HTTP_H2_REQUEST_HEAD_H
#define MK_HTTP_H2_REQUEST_HEAD_H

#include <monkey/str.h>

#include <stdbool.h>
#include <stdint.h>

struct mk__h2_request_head {
    char *data;
    uint32_t size;
    uint32_t len;       /* of the head */
    uint32_t pseudo_at; /* pseudo fields are kept behind here, until the first other field or the end */
    uint32_t fields;
    uint64_t bytes_in;   /* of names and values, as they came */
    bool begun;          /* the request line is there */
    bool too_large;      /* something has not found room, */
    bool line_too_large; /* be it of the request line */
    bool has_length;
    struct mk_str method, scheme, path, authority, protocol; /* in `data` */
};

/* `data` stays the caller's. */
void mk__h2_request_head_init(struct mk__h2_request_head *h, char *data, uint32_t size);
/* A field, in the order in which they came; the names are known to be lower-case tokens. */
void mk__h2_request_head_add(struct mk__h2_request_head *h, struct mk_str name, struct mk_str value);
/*
 * All fields are there: the whole head; `body` will follow. 0, or the status that it deserves: 400 for a target of
 * another scheme or form than RFC 9113 section 8.3.1 allows; 414 or 431 with an empty head for one that is too large.
 */
int mk__h2_request_head_end(struct mk__h2_request_head *h, bool body, struct mk_str *ret_head);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * Writes the head of an HTTP/2 request as the bytes of an HTTP/1.1 head, so that one parser (http/message/parse.h,
 * http/message/request_head.h) with one set of limits reads both, and HTTP/2 allows nothing that HTTP/1.1 does not. RFC
 * 9113 section 8.3.
 *
 *     :method GET, :path /a, :authority example.org, accept x
 *         ─► GET /a HTTP/1.1 CRLF host: example.org CRLF accept: x ...
 *
 * An extended CONNECT (RFC 8441) becomes the equivalent GET with `Upgrade`.
 */
#ifndef MK_HTTP_H2_REQUEST_HEAD_H
#define MK_HTTP_H2_REQUEST_HEAD_H

#include <monkey/str.h>

#include <stdbool.h>
#include <stdint.h>

struct mk__h2_request_head {
    char *data;
    uint32_t size;
    uint32_t len;       /* length of the head */
    uint32_t pseudo_at; /* pseudo-header fields are kept from here to the end, until the first other field */
    uint32_t fields;
    uint64_t bytes_in;   /* bytes of names and values as received */
    bool begun;          /* the request line is written */
    bool too_large;      /* a part did not fit, */
    bool line_too_large; /* and this was a part of the request line */
    bool has_length;
    struct mk_str method, scheme, path, authority, protocol; /* in `data` */
};

/* Starts a head in `data`, which stays the caller's. */
void mk__h2_request_head_init(struct mk__h2_request_head *h, char *data, uint32_t size);
/* Adds a field, in the order of arrival. nghttp2 has checked that names are lower-case tokens. */
void mk__h2_request_head_add(struct mk__h2_request_head *h, struct mk_str name, struct mk_str value);
/*
 * Ends the head; with `body` a body follows.
 * Returns 0, or a status: 400 for a target of another scheme or form than RFC 9113 section 8.3.1 allows; 414 or 431,
 * with an empty head, if it is too large.
 */
int mk__h2_request_head_end(struct mk__h2_request_head *h, bool body, struct mk_str *ret_head);

#endif

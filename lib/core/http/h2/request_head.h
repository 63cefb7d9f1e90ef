// SPDX-License-Identifier: Apache-2.0
/*
 * The head of an HTTP/2 request: checks its fields (RFC 9113 sections 8.2 and 8.3), and writes them as the bytes of an
 * HTTP/1.1 head, so that one parser (http/message/parse.h, http/message/request_head.h) with one set of limits reads
 * both, and HTTP/2 allows nothing that HTTP/1.1 does not.
 *
 *     :method GET, :path /a, :authority example.org, accept x
 *         ─► GET /a HTTP/1.1 CRLF host: example.org CRLF accept: x ...
 *
 * An extended CONNECT (RFC 8441) becomes the equivalent GET with `Upgrade`.
 */
#ifndef MK_HTTP_H2_REQUEST_HEAD_H
#define MK_HTTP_H2_REQUEST_HEAD_H

#include "http/h2/hpack.h"

struct mk__h2_request_head {
    char *data;
    uint32_t size;
    uint32_t len;        /* length of the head */
    uint32_t pseudo_at;  /* pseudo-header fields are kept from here to the end, until the first other field */
    uint8_t seen;        /* pseudo-header fields, a bit for each */
    bool malformed;      /* a field is not valid, or not in its place */
    bool begun;          /* the request line is written */
    bool too_large;      /* a part did not fit, */
    bool line_too_large; /* and this was a part of the request line */
    bool has_host;
    int64_t length;                                          /* of Content-Length; -1: none */
    struct mk_str method, scheme, path, authority, protocol; /* in `data` */
};

/* Starts a head in `data`, which stays the caller's. */
void mk__h2_request_head_init(struct mk__h2_request_head *h, char *data, uint32_t size);
/* Adds a field, in the order of arrival. */
void mk__h2_request_head_add(struct mk__h2_request_head *h, const struct mk__hpack_field *field);
/* Returns whether all fields are valid and none is missing: section 8.3.1. */
bool mk__h2_request_head_is_well_formed(const struct mk__h2_request_head *h);
/*
 * Ends the head, which is well-formed; with `body` a body follows.
 * Returns 0, or a status: 400 for a target of another scheme or form than RFC 9113 section 8.3.1 allows; 414 or 431,
 * with an empty head, if it is too large.
 */
int mk__h2_request_head_end(struct mk__h2_request_head *h, bool body, struct mk_str *ret_head);

/* Returns whether a field that is no pseudo-header field may be in a head, or in trailers. */
bool mk__h2_request_head_is_valid_field(struct mk_str name, struct mk_str value);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * The head of an HTTP/2 request: checks its fields (RFC 9113 sections 8.2 and 8.3), and stores them as the HTTP/1
 * parser (http/message/parse.h) would have: the bytes of an HTTP/1.1 head, with a span for each part. One function
 * reads the meaning of both (http/message/request_head.h), with one set of limits, and HTTP/2 allows nothing that
 * HTTP/1.1 does not. Nothing is parsed again.
 *
 *     :method GET, :path /a, :authority example.org, accept x
 *         ─► GET /a HTTP/1.1 CRLF host: example.org CRLF accept: x ...
 *            └m┘ └t              └name └value            └name  └value
 *
 * An extended CONNECT (RFC 8441) becomes the equivalent GET with `Upgrade`.
 */
#ifndef MK_HTTP_H2_REQUEST_HEAD_H
#define MK_HTTP_H2_REQUEST_HEAD_H

#include "http/h2/hpack.h"
#include "http/message/parse.h"

struct mk__h2_request_head {
    struct mk_head_parser parse; /* the result: its phase is DONE if the head can be read */
    struct mk_field *fields;
    struct mk__parse_limits limits;
    char *data;
    uint32_t size;
    uint32_t len;        /* length of the head */
    uint32_t pseudo_at;  /* pseudo-header fields are kept from here to the end, until the first other field */
    uint16_t joined;     /* cookie fields that were joined to the first one */
    uint8_t seen;        /* pseudo-header fields, a bit for each */
    bool malformed;      /* a field is not valid, or not in its place */
    bool begun;          /* the request line is written */
    bool too_large;      /* a part did not fit, */
    bool line_too_large; /* and this was a part of the request line */
    bool too_many;       /* fields */
    bool has_priority;   /* a field of RFC 9218 */
    bool is_http;        /* the scheme is http or https */
    bool bad_target;     /* it has bytes that no target has, but none that could end the line */
    int64_t length;      /* of Content-Length; -1: none */
    struct mk_str method, scheme, path, authority, protocol; /* in `data` */
};

/* Starts a head in `data` and `fields`, which stay the caller's and have room for limits->fields_max. */
void mk__h2_request_head_init(struct mk__h2_request_head *h, char *data, uint32_t size, struct mk_field *fields,
                              const struct mk__parse_limits *limits);
/* Adds a field, in the order of arrival. */
void mk__h2_request_head_add(struct mk__h2_request_head *h, const struct mk__hpack_field *field);
/* Returns whether all fields are valid and none is missing: section 8.3.1. */
bool mk__h2_request_head_is_well_formed(const struct mk__h2_request_head *h);
/*
 * Ends the head, which is well-formed; with `body` a body follows.
 * Returns 0, or a negative status: -400 for a target of another scheme or form than RFC 9113 section 8.3.1 allows; -414
 * or -431 if it is above a limit.
 */
int mk__h2_request_head_end(struct mk__h2_request_head *h, bool body);

/* Returns whether a field that is no pseudo-header field may be in a head, or in trailers. */
bool mk__h2_request_head_is_valid_field(const struct mk__hpack_row *row);
/* Returns whether a field belongs to an HTTP/1 connection, in a request or a response: section 8.2.2. */
bool mk__h2_request_head_is_of_connection(struct mk_str name);

#endif

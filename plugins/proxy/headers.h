// SPDX-License-Identifier: Apache-2.0
/*
 * What a proxy does with each header (RFC 9110 section 7.6): a table for both directions.
 */
#ifndef PROXY_HEADERS_H
#define PROXY_HEADERS_H

#include <monkey/base/str.h>

enum header_rule {
    HEADER_PASS,
    HEADER_DROP,   /* of one connection, or replaced by what the server writes itself */
    HEADER_SET,    /* that the proxy sets in requests: one of the client is not passed on */
    HEADER_LENGTH, /* Content-Length */
    HEADER_DATE,
    HEADER_LOCATION, /* also Content-Location */
    HEADER_REFRESH,
    HEADER_LINK,
    HEADER_COOKIE,       /* Set-Cookie */
    HEADER_DESTINATION,  /* in requests: of WebDAV */
    HEADER_IF,           /* in requests: of WebDAV */
    HEADER_MAX_FORWARDS, /* in requests, which the proxy counts down */
    /* In requests: has a `_`, and is a header with a rule once that is read as `-`, as many backends do. */
    HEADER_AMBIGUOUS,
};

/* Tells whether a header of a request is passed on, if nothing in the request or the section speaks against it. */
static inline bool header_is_passed(enum header_rule rule)
{
    return rule == HEADER_PASS || rule == HEADER_DESTINATION || rule == HEADER_IF;
}

/* Returns what becomes of a header of a request. */
enum header_rule header_of_request(struct mk_str name);
/* Returns what becomes of a header of a response. */
enum header_rule header_of_response(struct mk_str name);
/* Tells whether a trailer is one: others are about the framing, or belong in the head (RFC 9110 section 6.5.1). */
bool header_may_be_trailer(struct mk_str name);

#endif

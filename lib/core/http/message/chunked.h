// SPDX-License-Identifier: Apache-2.0
/*
 * Decodes the chunked transfer coding (RFC 9112 section 7.1), piece by piece. Pure: between two calls it keeps a few
 * numbers, but no bytes.
 */
#ifndef MK_HTTP_MESSAGE_CHUNKED_H
#define MK_HTTP_MESSAGE_CHUNKED_H

#include <stdint.h>
#include <sys/types.h>

#include <monkey/str.h>

struct mk__chunked_limits {
    uint32_t line_bytes_max;      /* of one chunk line: size, extensions, CRLF */
    uint32_t ext_bytes_total_max; /* of all extensions of a body, each from its first BWS or ";" */
    uint32_t trailer_bytes_max;   /* of the trailer section with its last CRLF */
    uint32_t trailer_count_max;
};

struct mk__chunked {
    struct mk__chunked_limits limits;
    uint64_t left; /* bytes of data in the current chunk */
    uint32_t line_bytes, ext_bytes, trailer_bytes, trailer_count;
    uint8_t state, digits;
    bool done; /* the trailer section has ended */
};

/* Prepares for a body; copies the limits. */
void mk__chunked_init(struct mk__chunked *c, const struct mk__chunked_limits *limits);

/*
 * Decodes a piece of the coded body, and stores at most one span of data, which points into `in` and may be empty. Call
 * again with the rest until `in` is used up or `c->done` is set; what remains then belongs to the next message. The
 * syntax of trailer fields is checked, and they are dropped. Returns the number of bytes of `in` that were used,
 * -EINVAL (malformed) or -EMSGSIZE (above a limit). Errors are final.
 */
ssize_t mk__chunked_decode(struct mk__chunked *c, const char *in, size_t len, struct mk_str *ret_data);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * The chunked transfer coding (RFC 9112 section 7.1), decoded as the bytes come. Pure: it keeps a few
 * numbers between two calls, never a byte.
 */
#ifndef MK_HTTP_MESSAGE_CHUNKED_H
#define MK_HTTP_MESSAGE_CHUNKED_H

#include <stdint.h>
#include <sys/types.h>

#include <monkey/str.h>

struct mk__chunked_limits {
    uint32_t line_bytes_max;      /* of one chunk line: size, extensions, CRLF */
    uint32_t ext_bytes_total_max; /* of the extensions of a whole body, each from its first BWS or ";" */
    uint32_t trailer_bytes_max;   /* of the trailer section with its last CRLF */
    uint32_t trailer_count_max;
};

struct mk__chunked {
    struct mk__chunked_limits limits;
    uint64_t left; /* of the current chunk's data */
    uint32_t line_bytes, ext_bytes, trailer_bytes, trailer_count;
    uint8_t state, digits;
    bool done; /* the trailer section has ended */
};

void mk__chunked_init(struct mk__chunked *c, const struct mk__chunked_limits *limits);

/*
 * Decodes a piece of the coded body. Returns how many bytes of `in` it used up, with at most one span of
 * data (which points into `in`; its length may be 0): call again with the rest until it is used up or
 * `c->done` is set; what then remains belongs to the next message. Trailer fields are checked for their
 * syntax and dropped. -EINVAL: malformed; -EMSGSIZE: over a limit. An error is final.
 */
ssize_t mk__chunked_decode(struct mk__chunked *c, const char *in, size_t len, struct mk_str *ret_data);

#endif

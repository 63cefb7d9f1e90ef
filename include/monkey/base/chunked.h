// SPDX-License-Identifier: Apache-2.0
/*
 * Decodes the chunked transfer coding (RFC 9112 section 7.1), piece by piece. Pure: between two calls it keeps a few
 * numbers, but no bytes. Any thread.
 */
#ifndef MONKEY_CHUNKED_H
#define MONKEY_CHUNKED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "../status.h"
#include "buf.h"
#include "str.h"

MK_C_BEGIN

struct mk_chunked_limits {
    uint32_t line_bytes_max;      /* of one chunk line: size, extensions, CRLF */
    uint32_t ext_bytes_total_max; /* of all extensions of a body, each from its first BWS or ";" */
    uint32_t trailer_bytes_max;   /* of the trailer section with its last CRLF */
    uint32_t trailer_count_max;
};

struct mk_chunked {
    struct mk_chunked_limits limits;
    /*
     * Gets the lines of the trailer section, each with its CRLF, for mk_chunked_next_trailer(); NULL: they are dropped.
     * The caller sets it after mk_chunked_init(), and looks at its sticky error at the end.
     */
    struct mk_buf *trailers;
    bool recovers; /* accepts what <monkey/base/response_parser.h> does; set as `trailers` */
    /* The rest is private to the library, but for `done`. */
    uint64_t left; /* bytes of data in the current chunk */
    uint32_t line_bytes, ext_bytes, trailer_bytes, trailer_count;
    uint8_t state, digits, broken_in;
    bool done; /* the trailer section has ended */
};

/* Prepares for a body; copies the limits. */
MK_API void mk_chunked_init(struct mk_chunked *c, const struct mk_chunked_limits *limits);

/*
 * Decodes a piece of the coded body, and stores at most one span of data, which points into `in` and may be empty. Call
 * again with the rest until `in` is used up or `c->done` is set; what remains then belongs to the next message. The
 * syntax of trailer fields is checked.
 * Returns the number of bytes of `in` that were used, -EINVAL (malformed) or -EMSGSIZE (above a limit). Errors are
 * final.
 */
MK_API ssize_t mk_chunked_decode(struct mk_chunked *c, const char *in, size_t len, struct mk_str *ret_data);

/* Returns what is malformed, after -EINVAL: a literal, for the log. */
MK_API const char *mk_chunked_fault(const struct mk_chunked *c);

/*
 * Returns how many bytes of data are certain to come next, without framing between them; 0 in a chunk line. A caller
 * that has moved some of them elsewhere, as splice(2) does, calls mk_chunked_skip() with their number.
 */
MK_API uint64_t mk_chunked_skippable(const struct mk_chunked *c);
MK_API void mk_chunked_skip(struct mk_chunked *c, uint64_t n);

/* Cuts the first line of `*rest`, the content of `trailers`. Returns false if there is none. */
MK_API bool mk_chunked_next_trailer(struct mk_str *rest, struct mk_str *ret_name, struct mk_str *ret_value);

MK_C_END

#endif

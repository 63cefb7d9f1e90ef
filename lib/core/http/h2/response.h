// SPDX-License-Identifier: Apache-2.0
/*
 * The response on an HTTP/2 stream (RFC 9113 section 8.1): its header fields and the bytes of its body.
 */
#ifndef MK_HTTP_H2_RESPONSE_H
#define MK_HTTP_H2_RESPONSE_H

#include "base/digits.h"
#include "http/h2/h2.h"

enum { MK__H2_HEADERS_MAX = MK__HEADERS_MAX + 8 };

struct mk__h2_headers {
    struct mk__hpack_header items[MK__H2_HEADERS_MAX];
    unsigned n;
    size_t bytes; /* of names and values */
    char status[3], length[MK__DIGITS_MAX];
};

/* Starts the response: runs the hooks, after which the head is sent, and then the body. */
void mk__h2_response_begin(struct mk__h2_stream *s);
/* Fills `f` with the fields of the head. They are valid as long as `f` and the stream. */
void mk__h2_response_headers(const struct mk__h2_stream *s, struct mk__h2_headers *f);
/* Fills `f` with those of an interim response. They are valid as long as `f` and `interim`. */
void mk__h2_response_interim(const struct mk__interim *interim, struct mk__h2_headers *f);
/* Fills `f` with the trailers. Returns false if there are none. */
bool mk__h2_response_trailers(const struct mk__h2_stream *s, struct mk__h2_headers *f);
/*
 * Reads the next bytes of the body; `*ret_end`: they are the last ones.
 * Returns their number, which may be 0 if none are ready, -EBUSY (other connections run first) or another -errno (the
 * body cannot be completed).
 */
ssize_t mk__h2_response_read(struct mk__h2_stream *s, char *to, size_t size, bool *ret_end);
/* Returns how many bytes of a file come next, which mk__h2_response_peek() can read; 0: something else. */
uint64_t mk__h2_response_file_bytes(const struct mk__h2_stream *s);
/* Reads these without taking them. Returns their number, 0 if the disk would have to be waited for. */
size_t mk__h2_response_peek(const struct mk__h2_stream *s, const struct iovec *to, int pieces);
/* Takes bytes that were read so. Results as mk__h2_response_read(). */
ssize_t mk__h2_response_skip(struct mk__h2_stream *s, size_t bytes, bool *ret_end);

#endif

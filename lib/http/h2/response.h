// SPDX-License-Identifier: Apache-2.0
/*
 * A response on its way to a stream of HTTP/2 (RFC 9113 section 8.1): its fields, and the bytes of its body.
 */
#ifndef MK_HTTP_H2_RESPONSE_H
#define MK_HTTP_H2_RESPONSE_H

#include "http/h2/h2.h"

enum { MK__H2_HEADERS_MAX = MK__HEADERS_MAX + 8 };

struct mk__h2_headers {
    struct mk__header items[MK__H2_HEADERS_MAX];
    unsigned n;
    char status[8], length[24];
};

/* The response begins: its head leaves, its body will be asked for if it has one. */
void mk__h2_response_begin(struct mk__h2_stream *s);
/* What its head says; `interim`: 100, and nothing else. Lives as long as both. */
void mk__h2_response_headers(const struct mk__h2_stream *s, bool interim, struct mk__h2_headers *f);
/* The fields behind its body; false: there are none. */
bool mk__h2_response_trailers(const struct mk__h2_stream *s, struct mk__h2_headers *f);
/*
 * The next bytes of the body: the count, and whether they are the last; 0 and not the end: there are none yet; -EBUSY:
 * others first; another -errno: it cannot be completed.
 */
ssize_t mk__h2_response_read(struct mk__h2_stream *s, char *to, size_t size, bool *ret_end);

#endif

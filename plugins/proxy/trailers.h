// SPDX-License-Identifier: Apache-2.0
/*
 * Trailers of requests (RFC 9110 section 6.5): those are passed on that the client has announced in the header Trailer,
 * and that may be trailers. They need a body in chunks.
 */
#ifndef PROXY_TRAILERS_H
#define PROXY_TRAILERS_H

#include "fields.h"

/* Tells whether the client has announced trailers. */
bool trailers_are_announced(struct mk_request *req);
/* Writes the header Trailer, if the client has announced some that are passed on. */
void trailers_announce(struct mk_buf *out, struct mk_request *req, const struct field_changes *changes);
/*
 * Returns the last chunk with the trailers, after the end of the body; valid until the exchange ends. `.p` is NULL if
 * there are none, or without memory. The trailers were kept (mk_request_keep_trailers()).
 */
struct mk_str trailers_make_chunk(struct mk_request *req, const struct field_changes *changes);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * Traces that begin here (W3C Trace Context): TraceSample, and the header traceparent.
 *
 *     00-0af7651916cd43dd8448eb211c80319c-8448eb211c80319c-01
 *        └ trace: of the request ID ────┘ └ span ────────┘ └ sampled
 */
#ifndef PROXY_TRACE_H
#define PROXY_TRACE_H

#include "fields.h"

/* Shares are in millionths. */
enum { TRACE_OFF = -1, TRACE_ALL = 1000000 };

/* Parses the value of TraceSample, an int32_t; mk_conf_parse_fn. */
int trace_parse_share(const struct mk_conf_value *value, void *share, struct mk_arena *arena, struct mk_buf *error);

/* Tells whether a value of traceparent is one, of any version (section 3.2). Pure. */
bool trace_is_valid(struct mk_str value);
/*
 * Tells whether a trace belongs to a share. That depends on the last 56 bits of its ID, which are random (W3C Trace
 * Context Level 2), so that all tries of a request, and servers with the same share, decide alike. Pure.
 */
bool trace_is_sampled(struct mk_str id, int32_t share);

/*
 * Returns the traceparent of a trace that begins with this request: the client has sent no valid one, and a share is
 * set. It is the same in all tries, and noted for the log. Empty: what the client has sent is passed on.
 */
struct mk_str trace_begin(struct mk_request *req, int32_t share, const struct field_changes *changes);
/* Tells whether a header of the client belongs to a trace that another one replaces. Pure. */
bool trace_replaces(struct mk_str name);

#endif

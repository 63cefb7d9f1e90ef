// SPDX-License-Identifier: Apache-2.0
/*
 * Server-sent events (HTML standard, section 9.2).
 */
#ifndef DUDA_CORE_REQUEST_SSE_H
#define DUDA_CORE_REQUEST_SSE_H

#include <monkey/base/buf.h>

#include <duda/response.h>

struct service;
struct service_worker;

/*
 * Appends an event; `type` and `id` without an address are left out. Each line of `data` (which end with CRLF, CR or
 * LF) becomes a field. Returns 0, -EINVAL (a line end in `type` or `id`) or the error of the buffer. Pure.
 */
int sse_format(struct mk_buf *out, struct mk_str type, struct mk_str id, struct mk_str data);

int sse_begin(duda_request_t *dr, unsigned heartbeat_s);
int sse_send(duda_request_t *dr, const char *type, const char *id, struct mk_str data);
int sse_set_retry(duda_request_t *dr, unsigned delay_ms);
/* Sends formatted events, and begins the interval of heartbeats again. Returns as output_add_copy(). */
int sse_pass(duda_request_t *dr, struct mk_str text);

/* ── sse_channels.c: hooks of features.c ── */

int sse_init(struct service *s);
void sse_release_worker(struct service_worker *w);
/* Ends the subscriptions of a request. */
void sse_leave_request(duda_request_t *dr);

#endif

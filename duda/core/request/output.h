// SPDX-License-Identifier: Apache-2.0
/*
 * The body of a response on its way to the server. It is held back until it ends or is flushed; then it is passed on,
 * and no faster than the client takes it.
 *
 *     output_*: parts ─► HELD ─► flush: SENDING ─► end: ENDING (parts wait) ─► ENDED
 *
 * Functions that add return 0, MK_AGAIN (added; more than 64 KB wait in the server), -EALREADY or -ENOMEM.
 */
#ifndef DUDA_CORE_REQUEST_OUTPUT_H
#define DUDA_CORE_REQUEST_OUTPUT_H

#include "request/request.h"

/* Adds bytes without a copy, or with one. */
int output_add_ref(struct duda_request *dr, struct mk_str data);
int output_add_copy(struct duda_request *dr, struct mk_str data);
/* Adds a part of a file. Takes `fd` over in any case. */
int output_add_file(struct duda_request *dr, int fd, uint64_t offset, uint64_t length);
int output_add_generator(struct duda_request *dr, duda_generate_fn fn, void *data);

/* Notes that there was no memory for a part: the response is not sent as if it were complete. Returns -ENOMEM. */
int output_miss(struct duda_request *dr);

/* Cuts what was added, which has no generator and is longer, to the first `bytes`. Before the head is sent. */
void output_truncate(struct duda_request *dr, uint64_t bytes);

/* Begins to send. Returns 0, MK_AGAIN, or -ENOMEM: the response is cut. */
int output_flush(struct duda_request *dr);
/* Ends the response. Returns 0, or -ENOMEM: the response is cut. */
int output_end(struct duda_request *dr);
/* Frees what waits. */
void output_drop(struct duda_request *dr);
/* The response was ended or cut in another way. */
void output_stop(struct duda_request *dr);
/* Sends the page of the host for a status, instead of what the service has begun. */
void output_send_page(struct duda_request *dr, int status);
/* Cuts the response, so that the client sees that it is incomplete. */
void output_abort(struct duda_request *dr);
/* Returns how many bytes wait here, after what the server has taken; generators do not count. */
uint64_t output_count_queued(const struct duda_request *dr);
/*
 * Copies all parts of a page (request.h) into an arena, and removes them. Returns MK_STR_NONE: there are generators,
 * more than 8 KB, or no memory.
 */
struct mk_str output_gather(struct duda_request *dr, struct mk_arena *arena);

#endif

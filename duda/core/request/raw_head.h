// SPDX-License-Identifier: Apache-2.0
/*
 * A head that the service prints itself (response->headers_off()): gathers it, reads it, and sets status and headers.
 */
#ifndef DUDA_CORE_REQUEST_RAW_HEAD_H
#define DUDA_CORE_REQUEST_RAW_HEAD_H

#include <monkey/base/str.h>

struct duda_request;

/* Begins to gather. Returns 0 or -ENOMEM. */
int raw_head_begin(struct duda_request *dr);
/*
 * Takes bytes that the service prints; `ret_rest`: what of them follows the head, valid as long as `data` or until
 * the next call. Returns 0, -EINVAL (it is no head), -EMSGSIZE (longer than 16 KB) or -ENOMEM.
 */
int raw_head_add(struct duda_request *dr, struct mk_str data, struct mk_str *ret_rest);
/* Frees what was gathered; does nothing without it. */
void raw_head_free(struct duda_request *dr);

/* ── pure functions ── */

/* Returns the bytes of the head up to its empty line; 0 if it is not complete. Lines end with CRLF or LF. */
size_t raw_head_length(struct mk_str text);
/* Cuts the next line off `rest`, without its end. Returns false when no line is left. */
bool raw_head_next_line(struct mk_str *rest, struct mk_str *ret_line);
/* Reads a status line: "HTTP/1.1 200 OK". Returns the status, or -EINVAL. */
int raw_head_status(struct mk_str line);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * Text of pages: escaping of bytes that need not be UTF-8, sizes and dates. Functions with a buffer append to it; its
 * sticky error reports a failure.
 */
#ifndef DIRLISTING_TEXT_H
#define DIRLISTING_TEXT_H

#include <monkey/buf.h>
#include <monkey/str.h>

/*
 * Appends text for HTML, as text and as a quoted value. The result is valid UTF-8: a byte that is not part of a
 * character becomes U+FFFD, and so do control characters and those that change the direction of text, which could make
 * a name look like another one. Line breaks and tabs become pictures (U+240A), or stay if `lines`.
 */
void text_html(struct mk_buf *out, struct mk_str text, bool lines);

/* Appends bytes for one part of a URI: percent-encodes all but unreserved characters (RFC 3986 section 2.3). */
void text_uri(struct mk_buf *out, struct mk_str bytes);

/*
 * Return a text in `storage`, which has room for TEXT_BYTES: "1.2 KB", "12,345 bytes", "2026-11-21 13:05" and
 * "2026-11-21T13:05:00Z". Times are UTC; one outside the years 0 to 9999 is empty.
 */
enum { TEXT_BYTES = 48 };
struct mk_str text_size(char *storage, uint64_t bytes);
struct mk_str text_exact_size(char *storage, uint64_t bytes);
struct mk_str text_time(char *storage, int64_t seconds);
struct mk_str text_iso_time(char *storage, int64_t seconds);

/* Returns a number with a comma between each three digits, in `storage`. */
struct mk_str text_number(char *storage, uint64_t n);

#endif

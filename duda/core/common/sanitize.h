// SPDX-License-Identifier: Apache-2.0
/*
 * Makes text for pages of any bytes. Pure.
 */
#ifndef DUDA_CORE_COMMON_SANITIZE_H
#define DUDA_CORE_COMMON_SANITIZE_H

#include <monkey/base/buf.h>

/*
 * Writes `text` as valid UTF-8 without control characters: what is invalid becomes U+FFFD, and a control character a
 * blank. Writes whole characters, at most `size` bytes. Returns how many.
 */
size_t sanitize_text(char *to, size_t size, struct mk_str text);

/* Appends a text, cleaned in this way and escaped for HTML. */
void sanitize_html(struct mk_buf *out, struct mk_str text);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * Text for formats that want UTF-8: bytes that are no UTF-8 become U+FFFD.
 */
#ifndef STATUS_TEXT_H
#define STATUS_TEXT_H

#include <monkey/buf.h>

/*
 * Cuts the next character (RFC 3629) off `rest`, which is not empty.
 * Returns its bytes, or U+FFFD for one byte that begins none.
 */
struct mk_str text_next(struct mk_str *rest);

/* Appends a text in UTF-8. */
void text_write(struct mk_buf *out, struct mk_str text);

#endif

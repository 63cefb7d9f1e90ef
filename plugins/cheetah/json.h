// SPDX-License-Identifier: Apache-2.0
/*
 * Writes JSON objects, one in a line. Errors are those of the buffer. Bytes of a string that are not UTF-8 are written
 * as the characters of these numbers (ISO 8859-1), so that a line is always valid.
 */
#ifndef CHEETAH_JSON_H
#define CHEETAH_JSON_H

#include <monkey/address.h>
#include <monkey/buf.h>

/* Begin and end an object; the end is the end of the line, too. */
void json_begin(struct mk_buf *out);
void json_end(struct mk_buf *out);

/* Add a member. */
void json_string(struct mk_buf *out, const char *key, struct mk_str value);
void json_text(struct mk_buf *out, const char *key, const char *value);
void json_number(struct mk_buf *out, const char *key, int64_t value);
void json_bool(struct mk_buf *out, const char *key, bool value);
/* The address without its port. */
void json_address(struct mk_buf *out, const char *key, const struct mk_address *value);
/* Adds a member whose value is the sentence that printf() makes, up to 1,023 bytes. */
void json_sentence(struct mk_buf *out, const char *key, const char *format, ...) MK_PRINTF(3, 4);

#endif

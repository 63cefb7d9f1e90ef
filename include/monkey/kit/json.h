// SPDX-License-Identifier: Apache-2.0
/*
 * Writes JSON (RFC 8259) into a buffer, value by value:
 *
 *     mk_json_open(out, NULL, '{');
 *     mk_json_str(out, "path", path);
 *     mk_json_open(out, "sizes", '[');
 *     mk_json_number(out, NULL, 12);
 *     mk_json_close(out, ']');
 *     mk_json_close(out, '}');                 {"path":"/a","sizes":[12]}
 *
 * `key` is that of a member of an object, and NULL in arrays and for the document. A comma is written before a value
 * unless it is the first after a bracket, a colon, a blank or the end of a line, or in the buffer: so objects that end
 * with a newline each follow one another without commas. Any bytes become valid JSON: each maximal part of a malformed
 * UTF-8 sequence is replaced by U+FFFD, and control characters are escaped. Errors are those of the buffer.
 *
 * In the kit: plugins link -lmonkey-kit.
 */
#ifndef MONKEY_JSON_H
#define MONKEY_JSON_H

#include "../base/address.h"
#include "../base/buf.h"

MK_C_BEGIN

/* Begin and end an object (`bracket` '{', '}') or an array ('[', ']'). */
MK_API void mk_json_open(struct mk_buf *out, const char *key, char bracket);
MK_API void mk_json_close(struct mk_buf *out, char bracket);

/* Ends an object and its line, for objects in separate lines. */
MK_API void mk_json_close_line(struct mk_buf *out);

/* Write a value: a string, a number, true or false, null. */
MK_API void mk_json_str(struct mk_buf *out, const char *key, struct mk_str value);
MK_API void mk_json_cstr(struct mk_buf *out, const char *key, const char *value);
MK_API void mk_json_number(struct mk_buf *out, const char *key, int64_t value);
MK_API void mk_json_bool(struct mk_buf *out, const char *key, bool value);
MK_API void mk_json_null(struct mk_buf *out, const char *key);
/* Writes a number with up to six decimal places; null if it is not finite, or above 10^15. */
MK_API void mk_json_real(struct mk_buf *out, const char *key, double value);
/* Writes an address without its port, as a string. */
MK_API void mk_json_address(struct mk_buf *out, const char *key, const struct mk_address *value);
/* Writes the text that printf() makes, up to 1,023 bytes, as a string. */
MK_API void mk_json_format(struct mk_buf *out, const char *key, const char *format, ...) MK_PRINTF(3, 4);

/* Writes a key that is any text; the value follows with a `key` of NULL, or by mk_buf_add(). */
MK_API void mk_json_key(struct mk_buf *out, struct mk_str key);

MK_C_END

#endif

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

/* ── JSON (RFC 8259) ── */

/* Writes values one after another, with the commas between them. */
struct json {
    struct mk_buf *out;
    bool follows; /* a value has been written before in this object or array */
};

/* Begins and ends an object (`bracket` '{', '}') or an array ('[', ']'). `key` NULL: in an array, or the document. */
void json_open(struct json *j, const char *key, char bracket);
void json_close(struct json *j, char bracket);
/* Writes a value. `key` NULL: in an array. */
void json_text(struct json *j, const char *key, struct mk_str value);
void json_number(struct json *j, const char *key, int64_t value);
/* Writes a number with up to six decimal places; null if it is not finite. */
void json_real(struct json *j, const char *key, double value);
void json_bool(struct json *j, const char *key, bool value);
void json_null(struct json *j, const char *key);
/* Writes a number under a key that is any text. */
void json_number_at(struct json *j, struct mk_str key, int64_t value);

#endif

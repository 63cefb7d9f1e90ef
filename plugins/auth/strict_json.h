// SPDX-License-Identifier: Apache-2.0
/*
 * Reads JSON by Jansson, and refuses what parsers understand differently: duplicate names, invalid UTF-8, \u0000, text
 * after the value, numbers beyond the range. Pure, any thread.
 */
#ifndef AUTH_STRICT_JSON_H
#define AUTH_STRICT_JSON_H

#include <monkey/buf.h>
#include <monkey/str.h>

#include <jansson.h>

enum { STRICT_JSON_DEPTH_MAX = 16 };

/*
 * Reads a text that is one object, nested up to STRICT_JSON_DEPTH_MAX. On an error `message` (or NULL) gets a phrase
 * with its place, "line 3, column 7: ..."; it does not quote the text, which may hold secrets.
 * Returns the object, which json_decref() frees, or NULL.
 */
json_t *strict_json_read_object(struct mk_str text, struct mk_buf *message);

/* Returns a string of an object, valid as long as the object; `.p` is NULL if it has none of that name. */
struct mk_str strict_json_string(const json_t *object, const char *name);

/* Returns the bytes of a string value. */
struct mk_str strict_json_text(const json_t *string);

#endif

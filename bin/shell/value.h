// SPDX-License-Identifier: Apache-2.0
/*
 * Values of answers as text, by the unit at the end of their key: sent_bytes is SENT with 1.5 KB on a terminal, and
 * with 1.5K elsewhere, so that a column is one word for other programs.
 */
#ifndef SHELL_VALUE_H
#define SHELL_VALUE_H

#include "object.h"
#include "text.h"

/* Returns the length of a key without its unit. */
size_t value_name_length(const char *key);
/* Returns whether the key is for programs only: it begins with an underscore, or another one tells people the same. */
bool value_is_hidden(const char *key);
/* Appends a value. `n_units`: of a time on a terminal. */
void value_add(struct mk_buf *out, const struct object_member *m, const struct text_style *style, unsigned n_units);
/* Returns the colour of a value: that of its state, for the keys of states. */
enum text_colour value_colour(const char *key, const char *value);

#endif

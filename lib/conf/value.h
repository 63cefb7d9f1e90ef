// SPDX-License-Identifier: Apache-2.0
/*
 * The types of values: how each is read, printed and described. A value parser exists once, here.
 */
#ifndef MK_CONF_VALUE_H
#define MK_CONF_VALUE_H

#include <monkey/conf.h>

/*
 * Reads a value into its field; a LIST appends. Strings are copied into the arena. 0; -ENOMEM; -E2BIG for
 * a second word where one is wanted; -EINVAL or a custom parser's -errno; `error` then holds what
 * follows the key's name in a sentence.
 */
int mk__value_parse(const struct mk_conf_key *key, const struct mk_conf_value *value, void *field,
                    struct mk_arena *arena, struct mk_buf *error);

/* A field's value as it can be read again (not CUSTOM, of which only its parser knows what it means). */
void mk__value_print(const struct mk_conf_key *key, const void *field, struct mk_buf *out);

/* "a number from 1 to 65535", "On or Off". */
void mk__value_describe(const struct mk_conf_key *key, struct mk_buf *out);

/* A text as one word that can be read again: bare, or quoted where it must be. */
void mk__value_quote(struct mk_str text, struct mk_buf *out);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * The types of values: how each is read, printed and described.
 */
#ifndef MK_CONF_VALUE_H
#define MK_CONF_VALUE_H

#include "conf/conf.h"
#include "conf/expand.h"

/* Where a value is from: `origin` of struct mk_conf_value. */
struct mk__value_source {
    struct mk__conf_origin origin;
    struct mk__words *words; /* which get the paths that parsers read */
};

/*
 * Reads a value into its field; a LIST appends. Strings are copied into the arena.
 * Returns 0, -ENOMEM, -E2BIG (there is more than one word), -EINVAL, or the -errno of a custom parser; on an error
 * `error` gets the rest of a sentence that begins with the key's name.
 */
MK_COLD int mk__value_parse(const struct mk_conf_key *key, const struct mk_conf_value *value, void *field,
                            struct mk_arena *arena, struct mk_buf *error);

/* Appends the value of a field in a form that can be read again. Not for CUSTOM, which only its parser can read. */
MK_COLD void mk__value_print(const struct mk_conf_key *key, const void *field, struct mk_buf *out);

/* Appends a description of valid values: "a number from 1 to 65535", "On or Off". */
MK_COLD void mk__value_describe(const struct mk_conf_key *key, struct mk_buf *out);

/* Appends a text as one word that can be read again: bare, or in quotes if necessary. */
MK_COLD void mk__value_quote(struct mk_str text, struct mk_buf *out);
/* Writes a text in quotes. */
MK_COLD void mk__value_add_quoted(struct mk_str text, struct mk_buf *out);

#endif

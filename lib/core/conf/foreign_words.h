// SPDX-License-Identifier: Apache-2.0
/*
 * Names of sections and keys in the configurations of nginx, Apache, lighttpd, Caddy and the original Monkey, and what
 * is written here in their place.
 */
#ifndef MK_CONF_FOREIGN_WORDS_H
#define MK_CONF_FOREIGN_WORDS_H

#include <monkey/base/str.h>

struct mk__foreign_word {
    const char *word;    /* a name, or a name and the first word of its value */
    const char *section; /* where the line belongs; empty: there is no such line */
    const char *here;    /* the line, or without a section a phrase that follows a semicolon */
    const char *also;    /* another line that it needs, or empty */
};

/*
 * Find a key, in any case, with the first word of its value, and a section by the first word of its name. Return
 * whether the name is known.
 */
bool mk__foreign_words_find_key(struct mk_str name, struct mk_str value, struct mk__foreign_word *ret);
bool mk__foreign_words_find_section(struct mk_str name, struct mk__foreign_word *ret);

/* Returns the key of the line to write. */
MK_COLD struct mk_str mk__foreign_words_key(const struct mk__foreign_word *word);

#endif

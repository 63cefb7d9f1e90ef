// SPDX-License-Identifier: Apache-2.0
/*
 * Which modules a configuration without plugins.load wants: those whose name is that of a section or key in its files.
 */
#ifndef MK_SERVER_AUTOLOAD_H
#define MK_SERVER_AUTOLOAD_H

#include <monkey/str.h>

#include <stdint.h>

/*
 * Looks for `names` (at most 32, ends with NULL) in monkey.conf and the files of sites/ and plugins/ below `dir`; case
 * does not matter. `*ret_wanted` has a bit for each that was found; what cannot be read wants nothing, and is told by
 * who reads it next. 0 or -ENOMEM.
 */
int mk__autoload_find_modules(const char *dir, const char *const *names, uint32_t *ret_wanted);
/* The same in a value of `Listen` or `TransportLayer` that came from elsewhere. */
uint32_t mk__autoload_match_words(struct mk_str words, const char *const *names);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * Finds the modules that a configuration without plugins.load needs: those whose name is that of a section or key in
 * its files. Left out of small builds.
 */
#ifndef MK_SERVER_AUTOLOAD_H
#define MK_SERVER_AUTOLOAD_H

#include <monkey/str.h>

#include <stdint.h>

/*
 * Searches monkey.conf and the files of sites/ and plugins/ below `dir` for `names` (at most 32, ends with NULL); case
 * does not matter. `*ret_wanted` gets a bit for each name that was found. Files that cannot be read are skipped:
 * loading the configuration reports them. Returns 0 or -ENOMEM.
 */
int mk__autoload_find_modules(const char *dir, const char *const *names, uint32_t *ret_wanted);
/* Returns the same bits for a value of `Listen` or `TransportLayer` from the command line. */
uint32_t mk__autoload_match_words(struct mk_str words, const char *const *names);

#endif

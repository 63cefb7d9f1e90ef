// SPDX-License-Identifier: Apache-2.0
/*
 * Finds the modules that a configuration without plugins.load needs: those whose name is that of a section or key in
 * its files, or a word of Listen or TransportLayer.
 */
#ifndef MK_SERVER_AUTOLOAD_H
#define MK_SERVER_AUTOLOAD_H

#include "conf/conf.h"

/*
 * Searches the files that the server reads below `dir`, and those that they include, for `names` (at most 32, ends with
 * NULL); case does not matter. `conf` is empty, and of no use afterwards but for its problems. `*ret_wanted` gets a bit
 * for each name that was found, and for "cache" where there is a DocumentRoot. Errors in the files are skipped: loading
 * the configuration reports them. Returns 0 or -ENOMEM.
 */
int mk__autoload_find_modules(struct mk__conf *conf, const char *dir, const char *const *names, uint32_t *ret_wanted);
/*
 * The same for a text in memory; adds the bits to `*ret_wanted`. The program that wrote the text chooses itself whether
 * files are cached: only a section does that.
 */
int mk__autoload_find_in_text(struct mk__conf *conf, struct mk_str text, const char *const *names,
                              uint32_t *ret_wanted);

/*
 * Passes the lines of these files, or of a text, to a callback: see mk__conf_on_line(). Return as the functions above.
 */
MK_COLD int mk__autoload_visit_files(struct mk__conf *conf, const char *dir, const char *const *names,
                                     mk__conf_line_fn fn, void *ctx);
MK_COLD int mk__autoload_visit_text(struct mk__conf *conf, struct mk_str text, mk__conf_line_fn fn, void *ctx);

/* Returns the same bit for one word, such as a value of `TransportLayer` from the command line. */
MK_COLD uint32_t mk__autoload_match_word(struct mk_str word, const char *const *names);

#endif

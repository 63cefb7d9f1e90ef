// SPDX-License-Identifier: Apache-2.0
/*
 * Finds the modules that a configuration without plugins.load needs: those whose name is that of a section or key in
 * its files, or a word of Listen or TransportLayer.
 */
#ifndef MK_SERVER_AUTOLOAD_H
#define MK_SERVER_AUTOLOAD_H

#include "conf/conf.h"

/* The files of a configuration. */
struct mk__autoload_files {
    const char *dir, *file;   /* with `file` only that one, else those that the server reads below `dir` */
    const char *const *names; /* of plugins, which may have a file each; at most 32, ends with NULL */
};

/*
 * Searches files, and those that they include, for names of plugins; case does not matter. `conf` is empty, and of no
 * use afterwards but for its problems. `*ret_wanted` gets a bit for each name that was found, for "cache" where there
 * is a DocumentRoot, and for "cheetah" where the server has a
 * folder for its sockets. Errors in the files are skipped: loading the
 * configuration reports them. Returns 0 or -ENOMEM.
 */
int mk__autoload_find_modules(struct mk__conf *conf, const struct mk__autoload_files *files, uint32_t *ret_wanted);
/*
 * The same for a text in memory; adds the bits to `*ret_wanted`. The program that wrote the text chooses itself whether
 * files are cached: only a section does that.
 */
int mk__autoload_find_in_text(struct mk__conf *conf, struct mk_str text, const char *const *names,
                              uint32_t *ret_wanted);

/*
 * Passes the lines of these files, or of a text, to a callback: see mk__conf_on_line(). Return as the functions above.
 */
MK_COLD int mk__autoload_visit_files(struct mk__conf *conf, const struct mk__autoload_files *files, mk__conf_line_fn fn,
                                     void *ctx);
MK_COLD int mk__autoload_visit_text(struct mk__conf *conf, struct mk_str text, mk__conf_line_fn fn, void *ctx);

/* Returns the same bit for one word, such as a value of `TransportLayer` from the command line. */
MK_COLD uint32_t mk__autoload_match_word(struct mk_str word, const char *const *names);

#endif

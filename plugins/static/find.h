// SPDX-License-Identifier: Apache-2.0
/*
 * Finds the file of a path in a site. Only the file system: no requests here.
 */
#ifndef STATIC_FIND_H
#define STATIC_FIND_H

#include "site.h"

/*
 * Finds the file of `path` (decoded, normalized, NUL-terminated, with a leading slash): the file itself, the index of a
 * directory, or FOUND_DIRECTORY for a directory without its slash. With `accept`, finds the best precompressed variant.
 * With `cached`, `err` may be EAGAIN: then call it again without `cached` on a thread that may wait. All names that are
 * tried belong to one root, even if it is swapped meanwhile. `path` must not change during the call, and the result may
 * point into it.
 */
struct find_result mk__static_find_path_with(struct static_site *site, struct mk_str path,
                                             const struct find_mode *mode);
/* The same without a cache. */
static inline struct find_result find_path(struct static_site *site, struct mk_str path, const struct mk_accept *accept,
                                           bool cached)
{
    return mk__static_find_path_with(site, path, &(struct find_mode){.accept = accept, .cached = cached});
}

/*
 * Opens a directory, whose path ends with a slash, for reading; without its index and TryFiles. May wait for a disk.
 * Returns FOUND_DIRECTORY with a descriptor, or FOUND_NOTHING.
 */
struct find_result mk__static_find_folder(struct static_site *site, struct mk_str path);

/* Checks the words of TryFiles, parses a last "=CODE", and reports errors. */
void mk__static_find_check_tryfiles(const struct mk_conf_check *check, struct static_host *host);
/* As tries() of struct mk_file_server. */
enum mk_tries mk__static_find_get_tries(const struct static_host *host);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * Opens single names below a root, and tells which are hidden.
 */
#ifndef STATIC_OPEN_H
#define STATIC_OPEN_H

#include "site.h"

/* Opens a file below a folder for reading, through links that stay there. Returns a descriptor or -errno. */
int mk__static_open_beneath(int root_fd, const char *path);
/*
 * Opens `name`, below the root and without a slash before it. With `cached` it does not wait for a disk, but may return
 * -EAGAIN.
 * Returns a descriptor or -errno.
 */
int mk__static_open_name(struct static_site *site, const char *name, bool cached);
/*
 * Looks a name up as mk__static_open_name() and mk__static_open_stat(), or in the cache. `shown` is the name for the
 * media type; `coding` is that of a variant.
 */
struct find_result mk__static_open_file(struct static_site *site, const struct find_mode *mode, const char *name,
                                        struct mk_str shown, enum mk_coding coding);
/* Returns the coding of a file's bytes, by the name for its media type; `variant`: unless that tells. */
enum mk_coding mk__static_open_coding(struct mk_str name, enum mk_coding variant);
/* Returns the root of a site as other plugins know it, with all of its names. */
struct mk_file_place mk__static_open_place(const struct static_site *site);
/* Sets what the cache needs to know of a root, in `site->root`. */
void mk__static_open_init_root(struct static_site *site);
/*
 * Opens a directory below `fd` that may be searched, with links as SymLink of the site says. May wait for a disk.
 * Returns a descriptor (O_PATH) or -errno.
 */
int mk__static_open_dir(const struct static_site *site, int fd, const char *name);
/* Makes a result of `fd` (or -errno): a regular file or a directory. Takes `fd` over. */
struct find_result mk__static_open_stat(int fd, struct mk_str name);
/* Closes the file of a result, if there is one to close; it must not be used then. */
void mk__static_open_release(struct find_result *f);
/* Returns true if this errno means that there is nothing to serve: 404. */
bool mk__static_open_is_missing(int err);
/* Returns true if DotFiles hides the path: a segment begins with a dot. /.well-known is not hidden (RFC 8615). */
bool mk__static_open_is_hidden(const struct static_site *site, struct mk_str path);

#endif

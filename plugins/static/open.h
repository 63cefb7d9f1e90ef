// SPDX-License-Identifier: Apache-2.0
/*
 * Opens single names below a root, and tells which are hidden.
 */
#ifndef STATIC_OPEN_H
#define STATIC_OPEN_H

#include "site.h"

/* Opens a file below a folder for reading, through links that stay there. Returns a descriptor or -errno. */
int open_beneath(int root_fd, const char *path);
/*
 * Opens `name`, below the root and without a slash before it. With `cached` it does not wait for a disk, but may return
 * -EAGAIN.
 * Returns a descriptor or -errno.
 */
int open_name(struct static_site *site, const char *name, bool cached);
/*
 * Opens a directory below `fd` that may be searched, with links as SymLink of the site says. May wait for a disk.
 * Returns a descriptor (O_PATH) or -errno.
 */
int open_dir(const struct static_site *site, int fd, const char *name);
/* Makes a result of `fd` (or -errno): a regular file or a directory. Takes `fd` over. */
struct find_result open_stat(int fd, struct mk_str name);
/* Returns true if this errno means that there is nothing to serve: 404. */
bool open_is_missing(int err);
/* Returns true if DotFiles hides the path: a segment begins with a dot. /.well-known is not hidden (RFC 8615). */
bool open_is_hidden(const struct static_site *site, struct mk_str path);

#endif

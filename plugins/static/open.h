// SPDX-License-Identifier: Apache-2.0
/*
 * Single names below a root: opened, looked at, and which of them nobody may see.
 */
#ifndef STATIC_OPEN_H
#define STATIC_OPEN_H

#include "static.h"

/* A descriptor of what is called `name` (below the root, without a slash before it), or -errno. */
int open_name(struct static_site *site, const char *name, bool cached);
/* A descriptor (O_PATH) of a directory below `fd` that may be searched, links as `site` wants it. Waits. -errno. */
int open_dir(const struct static_site *site, int fd, const char *name);
/* What `fd` (or -errno) is; it is taken. */
struct find_result open_stat(int fd, struct mk_str name);
/* Is this errno one of those that say that there is nothing for us? */
bool open_is_missing(int err);
/* Does a segment begin with a dot? What lies below /.well-known does not count (RFC 8615). */
bool open_is_hidden(const struct static_site *site, struct mk_str path);

#endif

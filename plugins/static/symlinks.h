// SPDX-License-Identifier: Apache-2.0
/*
 * Symbolic links that the kernel refuses although they stay inside.
 */
#ifndef STATIC_SYMLINKS_H
#define STATIC_SYMLINKS_H

#include "static.h"

/*
 * The same as opening `path` below the root, for SymLink Inside: links are followed by hand where the kernel
 * refuses them, since an absolute link may well lead to a place inside. Waits for the disk. -errno.
 */
int symlinks_open_file(struct static_site *site, const char *path);

#endif

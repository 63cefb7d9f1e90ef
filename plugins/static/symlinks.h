// SPDX-License-Identifier: Apache-2.0
/*
 * Follows absolute symbolic links that stay inside the root, which openat2(2) refuses.
 */
#ifndef STATIC_SYMLINKS_H
#define STATIC_SYMLINKS_H

#include "static.h"

/*
 * Opens `path` below the root for SymLink Inside, if openat2(2) has refused it with EXDEV. May wait for a disk.
 * Returns a descriptor or -errno.
 */
int symlinks_open_file(struct static_site *site, const char *path);

#endif

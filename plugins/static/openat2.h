// SPDX-License-Identifier: Apache-2.0
/*
 * Opens files below a directory with openat2(2).
 */
#ifndef STATIC_OPENAT2_H
#define STATIC_OPENAT2_H

#include <stdint.h>

/* Opens a file for reading; `resolve` as openat2(2). Returns a descriptor or -errno. */
int openat2_open_file(int root_fd, const char *path, uint64_t resolve);
/* Opens a directory (O_PATH), which need not be readable. Returns a descriptor or -errno. */
int openat2_open_dir(int root_fd, const char *path, uint64_t resolve);

#endif

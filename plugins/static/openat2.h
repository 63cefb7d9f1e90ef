// SPDX-License-Identifier: Apache-2.0
/*
 * Opening below a directory: the one place that calls openat2(2) for files.
 */
#ifndef STATIC_OPENAT2_H
#define STATIC_OPENAT2_H

#include <stdint.h>

/* openat2(2) with our flags. A descriptor or -errno. */
int openat2_open_file(int root_fd, const char *path, uint64_t resolve);
/* The same for a directory that need not be readable, only passed (O_PATH). */
int openat2_open_dir(int root_fd, const char *path, uint64_t resolve);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * What openat2(2) does, for kernels and sandboxes that refuse it.
 */
#ifndef MK_BASE_PATH_WALK_H
#define MK_BASE_PATH_WALK_H

#include <stdint.h>

/*
 * Opens a path as openat2(2) does, with flags of open(2) but O_CREAT and O_TMPFILE, and RESOLVE_BENEATH, _NO_SYMLINKS,
 * _NO_MAGICLINKS, _NO_XDEV and _CACHED; the last one returns -EAGAIN always, since it cannot be told what the kernel
 * has in memory. What is opened is below `dir` with RESOLVE_BENEATH, whatever is renamed meanwhile.
 * Returns a descriptor or the -errno of openat2(2), which is -EAGAIN too if a name changes in the midst. Any thread.
 */
int mk__path_walk_open(int dir, const char *path, uint64_t flags, uint64_t resolve);

#endif

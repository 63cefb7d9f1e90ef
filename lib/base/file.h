// SPDX-License-Identifier: Apache-2.0
/*
 * Whole files and file names for the time before the loop runs: these calls may wait for a disk.
 */
#ifndef MK_BASE_FILE_H
#define MK_BASE_FILE_H

#include <monkey/arena.h>

/*
 * The bytes of a regular file, in the arena, with a NUL behind them that does not count. 0, or -errno:
 * -EFBIG over `bytes_max`, -EISDIR, -EINVAL for anything else that is not a regular file (never waits for a FIFO).
 */
int mk__file_read(const char *path, size_t bytes_max, struct mk_arena *arena, struct mk_str *ret_bytes);

/* True when `path` is a pattern for mk__file_glob. */
bool mk__file_is_glob(struct mk_str path);

/*
 * The names that match, sorted by their bytes, without directories and dotfiles; none is no error.
 * 0, or -errno (-EACCES: a directory cannot be read).
 */
int mk__file_glob(const char *pattern, struct mk_arena *arena, struct mk_str **ret_names, size_t *ret_n);

#endif

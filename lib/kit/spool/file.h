// SPDX-License-Identifier: Apache-2.0
/*
 * The file of a spool. These functions may wait for a disk: they are called by disk threads.
 */
#ifndef MK_SPOOL_FILE_H
#define MK_SPOOL_FILE_H

#include "blocks.h"

/* Writes what is in the blocks to the offset `at`. Returns 0 or -errno. */
int mk__spool_file_write(int fd, const struct mk__spool_block *first, uint64_t at);
/* Fills the blocks with `n` bytes from the offset `at` on. Returns 0 or -errno: -EIO if the file is shorter. */
int mk__spool_file_read(int fd, struct mk__spool_block *first, uint64_t at, size_t n);
/*
 * Frees the space of what is between two offsets. Returns 0, or -errno: -EOPNOTSUPP if the file system cannot do that.
 */
int mk__spool_file_punch(int fd, uint64_t from, uint64_t to);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * Files that a process writes: logs, the pid file. A process with the rights of root may write anywhere, so another
 * user must not be able to choose where. A path is safe as long as each entry on it lies in a folder of root or of the
 * effective user which others cannot write to. Where a group can, or all users can and the sticky bit is set, the entry
 * itself must belong to one of the two.
 *
 *   - A symbolic link is followed if it is on the safe part of a path and belongs to one of the two users.
 *   - A file that has several names (hard links) is refused on the unsafe part.
 */
#ifndef MONKEY_FILE_H
#define MONKEY_FILE_H

#include <stdbool.h>

#include "status.h"

/*
 * Opens a file with flags of open(2); with O_CREAT it is created if it does not exist (`mode`), and `ret_made`, unless
 * NULL, says whether it was. With O_NOFOLLOW the path itself must not be a link of any owner. Returns a descriptor
 * (close-on-exec) or -errno; mk_file_error() explains it.
 */
MK_API int mk_file_open_output(const char *path, int flags, unsigned mode, bool *ret_made);

/*
 * Opens a pid file for reading and writing; `flags`: O_CREAT or 0. The file must be empty or hold a number and nothing
 * else, and must not be a link. Returns a descriptor (close-on-exec), -ENOTUNIQ (it is another kind of file) or -errno.
 */
MK_API int mk_file_open_pid(const char *path, int flags);

/* Returns 0 if mk_file_open_output() could open or create the file now, or -errno. Creates nothing. */
MK_API int mk_file_check_output(const char *path);

/* What an error of these functions means. The text is static, or strerror's. */
MK_API const char *mk_file_error(int err);

#endif

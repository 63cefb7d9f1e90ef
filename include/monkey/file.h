// SPDX-License-Identifier: Apache-2.0
/*
 * Opens files that a process writes, such as logs and the pid file. A process with the rights of root may write
 * anywhere, so other users must not be able to choose the file. A path is safe as long as each entry on it lies in a
 * folder of root or of the effective user that others cannot write to. If a group can, or all users can and the sticky
 * bit is set, the entry itself must belong to root or the effective user.
 *
 *   - A symbolic link is followed if it is on the safe part of a path and belongs to one of the two users.
 *   - A file with several names (hard links) on the unsafe part is refused.
 */
#ifndef MONKEY_FILE_H
#define MONKEY_FILE_H

#include <stdbool.h>

#include "status.h"

MK_C_BEGIN

/*
 * Opens a file with flags of open(2). With O_CREAT it is created with `mode` if it does not exist; `ret_made`, unless
 * NULL, tells whether it was. With O_NOFOLLOW the last entry must not be a link, even a safe one.
 * Returns a descriptor (close-on-exec), -ELOOP (a link that is not followed, or too many), -EMLINK (a file with several
 * names is refused), -EEXIST (the entry was replaced again and again), -ENAMETOOLONG or another -errno of open(2), such
 * as -ENOENT, -EACCES, -EISDIR or -ENOMEM. mk_file_error() explains it. May block; any thread.
 */
MK_API int mk_file_open_output(const char *path, int flags, unsigned mode, bool *ret_made);

/*
 * Opens a pid file for reading and writing; `flags`: O_CREAT or 0. The file must be empty or hold just a number, and
 * must not be a link.
 * Returns a descriptor (close-on-exec), -ENOTUNIQ (the file holds something else) or another -errno.
 */
MK_API int mk_file_open_pid(const char *path, int flags);

/*
 * Checks whether mk_file_open_output() could open or create the file now, without creating it.
 * Returns 0 or an -errno as mk_file_open_output(): -ELOOP, -EMLINK, -EISDIR, -EACCES, -ENAMETOOLONG, -ENOMEM ...
 */
MK_API int mk_file_check_output(const char *path);

/* Returns a phrase that explains an -errno of these functions: static text, or that of strerror(). */
MK_API const char *mk_file_error(int err);

MK_C_END

#endif

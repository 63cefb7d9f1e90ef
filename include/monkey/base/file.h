// SPDX-License-Identifier: Apache-2.0
/*
 * Reads small files whole, such as those that a configuration names, and opens files that a process writes, such as
 * logs and the pid file. These calls may wait for a disk: not for a running loop.
 *
 * A process with the rights of root may write anywhere, so other users must not be able to choose the file. A path is
 * safe as long as each entry on it lies in a folder of root or of the effective user that others cannot write to. If a
 * group can, or all users can and the sticky bit is set, the entry itself must belong to root or the effective user.
 *
 *   - A symbolic link is followed if it is on the safe part of a path and belongs to one of the two users.
 *   - A file with several names (hard links) on the unsafe part is refused.
 */
#ifndef MONKEY_FILE_H
#define MONKEY_FILE_H

#include <stdbool.h>

#include "arena.h"
#include "buf.h"

MK_C_BEGIN

/*
 * Calls openat2(2) with flags of open(2) and those of <linux/openat2.h>: RESOLVE_BENEATH keeps a path below a folder,
 * and RESOLVE_CACHED returns -EAGAIN where a disk would have to be asked. Where the kernel or a sandbox refuses the
 * call, the path is walked with openat(2), with the same results, but that RESOLVE_CACHED returns -EAGAIN always.
 * O_CREAT is not for it. Returns a descriptor or -errno. Any thread.
 */
MK_API int mk_file_openat2(int dir, const char *path, uint64_t flags, uint64_t resolve);
/* Adds a sentence without a full stop if the call is refused. Returns whether it is. Any thread. */
MK_API bool mk_file_explain_openat2(struct mk_buf *to);

/* What a file holds. */
struct mk_file_bytes {
    char *data; /* in the arena; a NUL follows that does not count */
    size_t len;
    unsigned mode; /* the permissions of the file: 0 to 07777 */
};

/*
 * Reads a regular file into an arena: what it held when it was opened, or less if it shrinks meanwhile. Never waits for
 * a FIFO.
 * Returns 0 or -errno: -EFBIG over `bytes_max`, -EISDIR, -EINVAL for other files that are not regular, -ENOMEM ...
 * mk_file_add_read_error() explains it. Any thread.
 */
MK_API int mk_file_read(const char *path, size_t bytes_max, struct mk_arena *arena, struct mk_file_bytes *ret);
/* The same for a file that the caller has opened with O_NONBLOCK, and closes. */
MK_API int mk_file_read_open(int fd, size_t bytes_max, struct mk_arena *arena, struct mk_file_bytes *ret);
/*
 * Adds a phrase that explains an -errno of both, for the end of a sentence that the file begins. Callers that need at
 * least one byte give -ENODATA: "is empty".
 */
MK_API void mk_file_add_read_error(struct mk_buf *to, int err, size_t bytes_max);

/* Returns whether a file of this mode may hold secrets: only its owner may write it, and only its group read it too. */
MK_API bool mk_file_is_private(unsigned mode);
/* Adds a phrase about a mode for which that is not so, for the end of a sentence that the file begins. */
MK_API void mk_file_add_mode_error(struct mk_buf *to, unsigned mode);

/*
 * Returns the number of the standard stream that a path names (`/dev/stdout`, `/dev/fd/2`, `/proc/self/fd/1`), or -1.
 * Such a path can be opened neither if the stream is a socket, nor by a user that may not open what it leads to.
 */
MK_API int mk_file_std_stream(const char *path);

/*
 * Opens a file with flags of open(2). With O_CREAT it is created with `mode` if it does not exist; `ret_made`, unless
 * NULL, tells whether it was. With O_NOFOLLOW the last entry must not be a link, even a safe one.
 * Returns a descriptor (close-on-exec), -ELOOP (a link that is not followed, or too many), -EMLINK (a file with several
 * names is refused), -EEXIST (the entry was replaced again and again), -ENAMETOOLONG or another -errno of open(2), such
 * as -ENOENT, -EACCES, -EISDIR or -ENOMEM. mk_file_error() explains it. A standard stream that cannot be opened by its
 * path is duplicated. May block; any thread.
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

/*
 * Returns the folder for the sockets of a server that is not told where: the first one of $RUNTIME_DIRECTORY, which
 * systemd sets for its services, or of $MONKEY_RUN_FOLDER if that variable is not set. Empty: there is none. It lives
 * as long as the environment.
 */
MK_API struct mk_str mk_file_run_folder(void);

MK_C_END

#endif

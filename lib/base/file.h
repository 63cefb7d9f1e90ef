// SPDX-License-Identifier: Apache-2.0
/*
 * Whole files and file names for the time before the loop runs: these calls may wait for a disk.
 */
#ifndef MK_BASE_FILE_H
#define MK_BASE_FILE_H

#include <monkey/arena.h>
#include <monkey/file.h>

#include <limits.h>

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

/* Where a path leads (monkey/file.h): an entry of a folder, which may not exist yet. */
struct mk__file_entry {
    int folder; /* O_PATH; to be closed by the caller */
    bool safe;  /* no other user could have made the entry or changed the way to it */
    bool magic; /* the entry is a link of procfs, to be opened without O_NOFOLLOW */
    char name[NAME_MAX + 1];
};

/* Returns 0 or -errno: -ELOOP for a link that must not be followed. `follow_last`: also a link at the end. */
int mk__file_find_entry(const char *path, bool follow_last, struct mk__file_entry *ret);

/*
 * Removes a Unix socket, and nothing else, without a link on the way that must not be followed. Returns 0, -ENOTSOCK or
 * another -errno.
 */
int mk__file_unlink_socket(const char *path);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * Expands file name patterns, and resolves paths of files that are written. These calls may wait for a disk: not for a
 * running loop.
 */
#ifndef MK_BASE_FILE_H
#define MK_BASE_FILE_H

#include <monkey/base/arena.h>
#include <monkey/base/file.h>

#include <limits.h>

/* Returns whether there is something at `path` that this process can reach. */
MK_COLD bool mk__file_exists(const char *path);
/*
 * Returns whether there is nothing at `path`. False for something that is hidden by a folder that this process may not
 * search: it may be a file with rules that protect, which must not be taken as missing.
 */
bool mk__file_is_missing(const char *path);

/* Returns whether `path` is a pattern for mk__file_glob(). */
bool mk__file_is_glob(struct mk_str path);

enum mk__file_glob { MK__FILE_ONLY = 0, MK__FILE_OR_FOLDER = 1, MK__FILE_SKIP_UNREADABLE = 2 };
/*
 * Finds the files whose names consist of `dir` and something that matches the pattern: `dir` is no pattern. They are
 * sorted by their bytes. Dotfiles are left out unless the pattern has the dot, and folders without MK__FILE_OR_FOLDER.
 * No match is no error.
 * Returns 0, -ENOMEM, or without MK__FILE_SKIP_UNREADABLE another -errno: a folder cannot be read.
 */
MK_COLD int mk__file_glob(struct mk_str dir, struct mk_str pattern, unsigned flags, struct mk_arena *arena,
                          struct mk_str **ret_names, size_t *ret_n);

/* What a path leads to (monkey/base/file.h): an entry of a folder, which need not exist yet. */
struct mk__file_entry {
    int folder; /* O_PATH descriptor; the caller closes it */
    bool safe;  /* no other user could have made the entry or changed the way to it */
    bool magic; /* the entry is a procfs link, to be opened without O_NOFOLLOW */
    char name[NAME_MAX + 1];
};

/*
 * Resolves `path` up to its last entry; with `follow_last` a link there is followed as well.
 * Returns 0 or -errno: -ELOOP for a link that must not be followed.
 */
int mk__file_find_entry(const char *path, bool follow_last, struct mk__file_entry *ret);

/*
 * Removes a Unix socket and no other file; links on the path are followed as <monkey/base/file.h> says.
 * Returns 0, -ENOTSOCK or another -errno.
 */
MK_COLD int mk__file_unlink_socket(const char *path);

#endif

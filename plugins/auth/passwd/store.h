// SPDX-License-Identifier: Apache-2.0
/*
 * The file of users: read under a lock, and replaced as a whole, so that a reader sees the old file or the new one.
 */
#ifndef PASSWD_STORE_H
#define PASSWD_STORE_H

#include <monkey/buf.h>

#include <sys/stat.h>

enum { STORE_LOCK_SECONDS = 10, STORE_NAME_BYTES = 512 };

struct store {
    int dir;          /* locked with flock(2) until store_close() */
    char path[4096];  /* without links */
    const char *name; /* in the folder */
    bool exists;
    struct stat st; /* if it exists */
    struct mk_buf text;
};

/*
 * Locks the folder of a file and reads the file, if it exists; links are followed. Without `change` nothing is locked.
 * Returns 0 or -errno: -EAGAIN (another one has held the lock for STORE_LOCK_SECONDS), -EFBIG (above
 * HTPASSWD_BYTES_MAX), -EISDIR (not a regular file), -ENOLINK (a link that leads nowhere).
 */
int store_open(struct store *s, const char *path, bool change);
/* Unlocks and frees. */
void store_close(struct store *s);

/*
 * Replaces the file: a new one is written next to it, synced and renamed. It keeps owner, group and mode; a file that
 * did not exist gets mode 600. Returns 0, or -errno (nothing was changed): -EPERM (the owner cannot be kept), -EACCES
 * (the folder cannot be written), -EEXIST (there is a file of the temporary name).
 */
int store_replace(struct store *s, struct mk_str text);

/* Writes the name that the new file has for a moment, of at most STORE_NAME_BYTES. */
void store_temporary_name(const struct store *s, char *to, size_t size);

#endif

// SPDX-License-Identifier: Apache-2.0
#ifndef AUTH_PASSWD_PASSWD_H
#define AUTH_PASSWD_PASSWD_H

#include "../passwords.h"

#include <monkey/base/buf.h>
#include <monkey/base/str.h>

#include <sys/stat.h>

/*
 * Changes the text of a file of users. Pure: lines that are not the user's stay as they are, also those that the
 * server does not accept.
 */
/* Finds the hash of a user. Returns false if no line has that name. */
bool edit_find(struct mk_str text, struct mk_str user, struct mk_str *ret_hash);

/*
 * Appends the text with a new hash of the user to `out`: in the place of the user's line, whose further fields stay, or
 * in a new line at the end. Further lines of the same name are left out. Returns true if the user was there.
 */
bool edit_set(struct mk_buf *out, struct mk_str text, struct mk_str user, struct mk_str hash);

/* Appends the text without the user's lines to `out`. Returns true if the user was there. */
bool edit_delete(struct mk_buf *out, struct mk_str text, struct mk_str user);

/*
 * The command line of mk_passwd.
 */
enum exit_code { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_WRONG = 3 };

enum action { ACTION_SET, ACTION_CREATE, ACTION_DELETE, ACTION_VERIFY };

struct options {
    enum action action;
    const char *path;
    struct mk_str user;
    enum scheme scheme;
    unsigned cost; /* 0: the default */
    bool from_stdin;
};

/* Reads the command line. Returns true, or false with the code to exit with: the help, or a message was printed. */
bool options_read(struct options *o, int argc, char **argv, int *ret_code);

/*
 * Reads a password: from the terminal without echo, or else the first line of the standard input.
 */
/*
 * Reads a password of at most `size` - 1 bytes into `to`, which ends with a NUL then. `from_stdin`: not from the
 * terminal, even if there is one. `twice`: a terminal is asked again, and both must be the same.
 * Returns the length, or -errno: -E2BIG (too long), -EILSEQ (the two differ), -ENODATA (the end), -EINTR (a signal).
 */
int prompt_read(char *to, size_t size, bool from_stdin, bool twice);

/*
 * The file of users: read under a lock, and replaced as a whole, so that a reader sees the old file or the new one.
 */
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

// SPDX-License-Identifier: Apache-2.0
/*
 * The folder of sessions in files: opening it, locks, and the number of files. For disk threads.
 */
#ifndef DUDA_CORE_SESSION_SESSION_FOLDER_H
#define DUDA_CORE_SESSION_SESSION_FOLDER_H

#include "session/session_store.h"

#include <monkey/status.h>

enum { SESSION_NAME_BYTES = 2 * MK_SHA1_BYTES + 1 };

struct session_lock {
    pthread_mutex_t *mutex;
    int fd;
};

/* Logs that something has failed, at most one line in ten seconds, and returns -EIO; -ENOMEM stays what it is. */
int session_folder_fail(struct session_store *store, int err);

/* Writes the name of a session's file. */
void session_folder_name(const struct session_key *key, char to[SESSION_NAME_BYTES]);

/*
 * Opens the folder, which it makes if it is missing. It must be one of this user, closed to all others. Returns a
 * descriptor or -errno.
 */
int session_folder_open(const struct session_store *store);

/*
 * Locks the sessions with the first digit of `key` against all threads and processes. Returns 0, or -errno: -ETIMEDOUT
 * if another process keeps the lock for two seconds.
 */
int session_folder_lock(struct session_store *store, int folder, const struct session_key *key,
                        struct session_lock *ret);
void session_folder_unlock(struct session_lock *lock);

/* Counts one session more, after it has made room for it. Returns 0, -EIO (logged) or -ENOMEM. No lock is held. */
int session_folder_reserve(struct session_store *store, int folder, int64_t now);
/* Counts one session less. */
void session_folder_forget(struct session_store *store);
/* Removes what has expired, and counts the rest. Returns as session_folder_reserve(). */
int session_folder_clean(struct session_store *store, int folder, int64_t now);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * Sessions in files. These functions wait for the disk and for each other, so they are for disk threads.
 *
 *     FOLDER/                         0700
 *        6a...f1 (40 hex digits)      0600: struct file_head │ values; its time of change is the last use
 *        6a...f1.new                  being written, then renamed
 *        lock-0 ... lock-f            flock(): sessions by their first digit, also for other processes
 */
#ifndef DUDA_CORE_SESSION_SESSION_FILE_H
#define DUDA_CORE_SESSION_SESSION_FILE_H

#include "session/session_store.h"

/*
 * Reads the values of a session, for heap_free(), and counts it as used. A file that is cut or is none of a session is
 * removed, and logged. Returns 0, -ENOENT, -EIO (logged) or -ENOMEM.
 */
int session_file_load(struct session_store *store, const struct session_key *key, int64_t now, struct mk_str *ret);
/* Returns 0, -ESTALE (`from` is gone), -ENOSPC (too large), -EIO (logged) or -ENOMEM. */
int session_file_commit(struct session_store *store, const struct session_commit *commit, int64_t now);

/* Returns whether session_file_clean() is due; to one caller only. Any thread; does not wait. */
bool session_file_must_clean(struct session_store *store, int64_t now);
/* Removes expired sessions, and what interrupted writes have left. Returns 0, -EIO (logged) or -ENOMEM. */
int session_file_clean(struct session_store *store, int64_t now);

#endif

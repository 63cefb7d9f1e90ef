// SPDX-License-Identifier: Apache-2.0
/*
 * Errors of calls: a negative number and a sentence.
 */
#ifndef DUDA_PACKAGES_SQLITE_ERROR_H
#define DUDA_PACKAGES_SQLITE_ERROR_H

#include <sqlite3.h>

#include <monkey/base/log_limit.h>
#include <monkey/status.h>

#include <pthread.h>

enum { SQ_ERROR_BYTES = 384, SQ_LOG_ROWS = 8, SQ_LOG_INTERVAL_MS = MK_LOG_LIMIT_MS };

struct sq_error {
    int err; /* 0: none */
    char text[SQ_ERROR_BYTES];
};

/* Sets an error. Returns `err`. */
int sq_error_set(struct sq_error *e, int err, const char *format, ...) MK_PRINTF(3, 4);
/* Returns -errno for a result code of SQLite, also for an extended one; `system_errno` is that of the failed call. */
int sq_error_number(int code, int system_errno);
/* Sets the error of a call of SQLite that has returned `code`; `name` is that of the database. Returns -errno. */
int sq_error_set_code(struct sq_error *e, const char *name, sqlite3 *db, int code);

/* ── lines of the log ── */

/* The last errors of a database; 0 at first, but for `lock`. */
struct sq_log {
    pthread_mutex_t lock;
    struct mk_log_limit_row rows[SQ_LOG_ROWS]; /* a kind of line is a statement with a number */
};

/*
 * Returns whether the error `err` of a statement, NULL for a transaction, may be logged now, as mk_log_limit_is_due()
 * does. Any thread.
 */
bool sq_log_is_due(struct sq_log *log, const char *sql, int err, uint64_t now_ms, unsigned *ret_missing);

#endif

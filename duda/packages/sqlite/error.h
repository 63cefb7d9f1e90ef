// SPDX-License-Identifier: Apache-2.0
/*
 * Errors of calls: a negative number and a sentence.
 */
#ifndef DUDA_PACKAGES_SQLITE_ERROR_H
#define DUDA_PACKAGES_SQLITE_ERROR_H

#include <sqlite3.h>

#include <monkey/status.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum { SQ_ERROR_BYTES = 384, SQ_LOG_ROWS = 8, SQ_LOG_INTERVAL_MS = 10000 };

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

/* An error of one statement. */
struct sq_log_row {
    uint64_t hash;      /* of its SQL and its number */
    uint64_t logged_ms; /* 0: the row is free */
    unsigned missing;   /* lines that were not written since then */
};

/* The last errors of a database; 0 at first, but for `lock`. */
struct sq_log {
    pthread_mutex_t lock;
    struct sq_log_row rows[SQ_LOG_ROWS];
};

/*
 * Returns whether the error `err` of a statement, NULL for a transaction, may be logged now, with the number of lines
 * before that were not written; counts it otherwise. A new error takes a free row or the oldest one, with its number,
 * unless that is younger than the interval. Any thread.
 */
bool sq_log_is_due(struct sq_log *log, const char *sql, int err, uint64_t now_ms, unsigned *ret_missing);

#endif

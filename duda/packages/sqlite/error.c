// SPDX-License-Identifier: Apache-2.0
/*
 * Errors of calls.
 */
#include "error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int sq_error_set(struct sq_error *e, int err, const char *format, ...)
{
    va_list args;
    e->err = err;
    va_start(args, format);
    vsnprintf(e->text, sizeof(e->text), format, args);
    va_end(args);
    return err;
}

/* Extended codes come before the primary ones that they belong to. */
static const struct {
    int code, err;
} numbers[] = {
    {SQLITE_CONSTRAINT_UNIQUE, -EEXIST},
    {SQLITE_CONSTRAINT_PRIMARYKEY, -EEXIST},
    {SQLITE_CONSTRAINT_ROWID, -EEXIST},
    {SQLITE_CONSTRAINT, -ERANGE},
    {SQLITE_BUSY, -EBUSY},
    {SQLITE_LOCKED, -EBUSY},
    {SQLITE_PROTOCOL, -EBUSY},
    {SQLITE_INTERRUPT, -ETIMEDOUT},
    {SQLITE_READONLY, -EROFS},
    {SQLITE_CORRUPT, -EUCLEAN},
    {SQLITE_NOTADB, -EUCLEAN},
    {SQLITE_FULL, -ENOSPC},
    {SQLITE_IOERR_NOMEM, -ENOMEM},
    {SQLITE_IOERR, -EIO},
    {SQLITE_NOMEM, -ENOMEM},
    {SQLITE_TOOBIG, -E2BIG},
    {SQLITE_PERM, -EACCES},
};

int sq_error_number(int code, int system_errno)
{
    for (size_t i = 0; i < MK_COUNT_OF(numbers); i++)
        if (numbers[i].code == code || numbers[i].code == (code & 0xff))
            return numbers[i].err;
    if ((code & 0xff) == SQLITE_CANTOPEN)
        return system_errno ? -system_errno : -EIO;
    return -EINVAL;
}

/* Returns whether the reason is that of a system call. */
static bool is_of_system(int code)
{
    return (code & 0xff) == SQLITE_CANTOPEN || (code & 0xff) == SQLITE_IOERR;
}

int sq_error_set_code(struct sq_error *e, const char *name, sqlite3 *db, int code)
{
    int system_errno = db && is_of_system(code) ? sqlite3_system_errno(db) : 0;
    const char *reason = db ? sqlite3_errmsg(db) : sqlite3_errstr(code);
    int err = sq_error_number(code, system_errno);
    if (system_errno)
        return sq_error_set(e, err, "%s: %s: %s", name, reason, strerror(system_errno));
    return sq_error_set(e, err, "%s: %s", name, reason);
}

/* ── lines of the log ── */

/* FNV-1a. */
static uint64_t hash_error(const char *sql, int err)
{
    uint64_t hash = 14695981039346656037u ^ (unsigned)err;
    for (const char *c = sql ? sql : ""; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 1099511628211u;
    return hash;
}

/* Returns the row of the error, or else a free row or the oldest one. */
static struct sq_log_row *find_row(struct sq_log *log, uint64_t hash)
{
    struct sq_log_row *oldest = log->rows;
    for (struct sq_log_row *row = log->rows; row < log->rows + SQ_LOG_ROWS; row++) {
        if (row->logged_ms && row->hash == hash)
            return row;
        if (row->logged_ms < oldest->logged_ms)
            oldest = row;
    }
    return oldest;
}

bool sq_log_is_due(struct sq_log *log, const char *sql, int err, uint64_t now_ms, unsigned *ret_missing)
{
    uint64_t hash = hash_error(sql, err);
    pthread_mutex_lock(&log->lock);
    struct sq_log_row *row = find_row(log, hash);
    bool is_due = !row->logged_ms || now_ms - row->logged_ms >= SQ_LOG_INTERVAL_MS;
    if (is_due) {
        *ret_missing = row->missing;
        *row = (struct sq_log_row){.hash = hash, .logged_ms = now_ms};
    } else
        row->missing++;
    pthread_mutex_unlock(&log->lock);
    return is_due;
}

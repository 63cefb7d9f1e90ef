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

bool sq_log_is_due(struct sq_log *log, const char *sql, int err, uint64_t now_ms, unsigned *ret_missing)
{
    uint64_t hash = mk_log_limit_hash((unsigned)err, sql ? sql : "");
    pthread_mutex_lock(&log->lock);
    bool is_due = mk_log_limit_is_due(log->rows, SQ_LOG_ROWS, hash, now_ms, ret_missing);
    pthread_mutex_unlock(&log->lock);
    return is_due;
}

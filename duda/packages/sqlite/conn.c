// SPDX-License-Identifier: Apache-2.0
/*
 * A connection to a database: statements and transactions.
 */
#include "conn.h"

#include <duda/mem.h>

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <time.h>

enum { PROGRESS_STEPS = 1000, BUSY_WAIT_MS = 20 };

/* ── limits of time ── */

static bool should_stop(struct sq_conn *c)
{
    c->was_stopped = c->was_stopped || (c->stopping && c->stopping());
    return c->was_stopped || mk_time_monotonic_ms() >= c->deadline.end_ms;
}

/* Called by SQLite each PROGRESS_STEPS steps of a statement. Another result than 0 ends it with SQLITE_INTERRUPT. */
static int on_progress(void *ctx)
{
    return should_stop(ctx);
}

/* Called by SQLite if the database is locked. The result 0 ends the wait with SQLITE_BUSY. */
static int on_busy(void *ctx, int count)
{
    struct sq_conn *c = ctx;
    int ms = count < BUSY_WAIT_MS ? count + 1 : BUSY_WAIT_MS;
    if (should_stop(c) || mk_time_monotonic_ms() >= c->deadline.busy_ms)
        return 0;
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000L}, NULL);
    return 1;
}

void sq_conn_watch(struct sq_conn *c)
{
    assert(c->db && c->conf);
    sqlite3_busy_handler(c->db, on_busy, c);
    sqlite3_progress_handler(c->db, PROGRESS_STEPS, on_progress, c);
}

/* ── errors ── */

/* Returns whether a wait for a lock was ended by query_ms, and not by busy_ms. */
static bool was_late(const struct sq_conn *c)
{
    return c->deadline.end_ms < c->deadline.busy_ms && mk_time_monotonic_ms() >= c->deadline.end_ms;
}

int sq_conn_fail(struct sq_conn *c, int code, struct sq_error *e)
{
    assert(code != SQLITE_OK);
    const struct sq_conf *conf = c->conf;
    int err = sq_error_number(code, 0);
    if (err == -EBUSY && !c->was_stopped && was_late(c))
        err = -ETIMEDOUT;
    if (err == -EBUSY && !c->was_stopped)
        return sq_error_set(e, err,
                            "%s: the database is locked: another connection or process has held the lock for %u ms",
                            conf->name, conf->busy_ms);
    if ((err == -ETIMEDOUT || err == -EBUSY) && c->was_stopped)
        return sq_error_set(e, -ECANCELED, "%s: the call was given up: its client has left, or the service ends",
                            conf->name);
    if (err == -ETIMEDOUT)
        return sq_error_set(e, err, "%s: the call has taken %u ms (query_ms), and was ended", conf->name,
                            conf->query_ms);
    if ((code & 0xff) == SQLITE_AUTH)
        return sq_error_set(e, err, "%s: this PRAGMA cannot be set by SQL, for all calls share the connection",
                            conf->name);
    if (err == -EROFS)
        return sq_error_set(e, err, "%s: the file or its folder is read-only for the server's user", conf->name);
    if (err == -ENOSPC && conf->file_bytes_max)
        return sq_error_set(e, err, "%s: the disk is full, or the file has the %llu bytes of file_bytes_max",
                            conf->name, (unsigned long long)conf->file_bytes_max);
    return sq_error_set_code(e, conf->name, c->db, code);
}

/* ── prepared statements ── */

static struct sq_statement *find_statement(struct sq_conn *c, const char *sql)
{
    for (size_t i = 0; i < SQ_STATEMENTS_MAX && c->statements[i].stmt; i++)
        if (strcmp(sqlite3_sql(c->statements[i].stmt), sql) == 0)
            return &c->statements[i];
    return NULL;
}

/* Returns a free place, or that of the statement whose last use is the longest ago. */
static struct sq_statement *find_place(struct sq_conn *c)
{
    struct sq_statement *oldest = &c->statements[0];
    for (size_t i = 0; i < SQ_STATEMENTS_MAX; i++) {
        struct sq_statement *s = &c->statements[i];
        if (!s->stmt)
            return s;
        if (s->last_use < oldest->last_use)
            oldest = s;
    }
    return oldest;
}

static int prepare_statement(struct sq_conn *c, const char *sql, struct sq_statement **ret, struct sq_error *e)
{
    struct sq_statement *place = find_statement(c, sql);
    if (!place) {
        const char *rest = NULL;
        sqlite3_stmt *stmt;
        int code = sqlite3_prepare_v3(c->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &stmt, &rest);
        if (code != SQLITE_OK)
            return sq_conn_fail(c, code, e);
        if (!stmt || rest[strspn(rest, " \t\r\n;")]) {
            sqlite3_finalize(stmt);
            return sq_error_set(e, -EINVAL, "%s: the SQL must be one statement", c->conf->name);
        }
        place = find_place(c);
        sqlite3_finalize(place->stmt);
        place->stmt = stmt;
    }
    assert(place->stmt);
    place->last_use = ++c->uses;
    *ret = place;
    return 0;
}

/* The arguments stay until the statement has ended. */
static int bind_value(sqlite3_stmt *stmt, int at, const struct duda_sqlite_value *v)
{
    const char *bytes = v->len ? v->bytes : "";
    switch (v->type) {
    case DUDA_SQLITE_INT:
        return sqlite3_bind_int64(stmt, at, v->integer);
    case DUDA_SQLITE_DOUBLE:
        return sqlite3_bind_double(stmt, at, v->real);
    case DUDA_SQLITE_TEXT:
        return sqlite3_bind_text64(stmt, at, bytes, v->len, SQLITE_STATIC, SQLITE_UTF8);
    case DUDA_SQLITE_BLOB:
        return sqlite3_bind_blob64(stmt, at, bytes, v->len, SQLITE_STATIC);
    case DUDA_SQLITE_NULL:
        return sqlite3_bind_null(stmt, at);
    }
    return SQLITE_MISUSE;
}

static int bind_values(struct sq_conn *c, sqlite3_stmt *stmt, const struct duda_sqlite_value *args, size_t n,
                       struct sq_error *e)
{
    int wanted = sqlite3_bind_parameter_count(stmt);
    if (n != (size_t)wanted)
        return sq_error_set(e, -EINVAL, "%s: the statement has %d parameters, and got %zu values", c->conf->name,
                            wanted, n);
    for (int i = 0; i < wanted; i++) {
        int code = bind_value(stmt, i + 1, &args[i]);
        if (code != SQLITE_OK)
            return sq_conn_fail(c, code, e);
    }
    return 0;
}

/* ── running ── */

static struct duda_sqlite_value read_value(sqlite3_stmt *stmt, int column)
{
    struct duda_sqlite_value value;
    switch (sqlite3_column_type(stmt, column)) {
    case SQLITE_INTEGER:
        return duda_sqlite_int(sqlite3_column_int64(stmt, column));
    case SQLITE_FLOAT:
        return duda_sqlite_double(sqlite3_column_double(stmt, column));
    case SQLITE_TEXT:
        value = duda_sqlite_text((const char *)sqlite3_column_text(stmt, column));
        value.len = (size_t)sqlite3_column_bytes(stmt, column);
        return value;
    case SQLITE_BLOB:
        value = duda_sqlite_null();
        value.type = DUDA_SQLITE_BLOB; /* an empty one has no pointer */
        value.bytes = sqlite3_column_blob(stmt, column);
        value.len = (size_t)sqlite3_column_bytes(stmt, column);
        return value;
    default:
        return duda_sqlite_null();
    }
}

static int add_row(struct sq_builder *b, sqlite3_stmt *stmt, int columns, bool is_head)
{
    int err = 0;
    for (int i = 0; i < columns && err == 0; i++)
        err = sq_builder_add(b, is_head ? duda_sqlite_text(sqlite3_column_name(stmt, i)) : read_value(stmt, i));
    return err;
}

static int set_result_error(struct sq_conn *c, int err, struct sq_error *e)
{
    if (err == -E2BIG)
        return sq_error_set(e, err, "%s: the result has more than %llu bytes (bytes_max): use LIMIT", c->conf->name,
                            (unsigned long long)c->conf->bytes_max);
    return sq_error_set(e, err, "%s: no memory for the result", c->conf->name);
}

static int step_rows(struct sq_conn *c, sqlite3_stmt *stmt, struct sq_builder *b, struct sq_error *e)
{
    int columns = sqlite3_column_count(stmt), code;
    int err = b ? add_row(b, stmt, columns, true) : 0;
    for (uint32_t n = 0; err == 0 && (code = sqlite3_step(stmt)) != SQLITE_DONE; n++) {
        if (code != SQLITE_ROW)
            return sq_conn_fail(c, code, e);
        if (b && n == c->conf->rows_max)
            return sq_error_set(e, -E2BIG, "%s: the result has more than %u rows (rows_max): use LIMIT", c->conf->name,
                                c->conf->rows_max);
        err = b ? add_row(b, stmt, columns, false) : 0;
    }
    return err == 0 ? 0 : set_result_error(c, err, e);
}

/* SQLite continues with a file that has no name any more: what is written there is lost. */
static int check_file(struct sq_conn *c, struct sq_error *e)
{
    int has_moved = 0;
    sqlite3_file_control(c->db, "main", SQLITE_FCNTL_HAS_MOVED, &has_moved);
    return has_moved
               ? sq_error_set(e, -ESTALE, "%s: the file was removed or replaced: load the service again", c->conf->name)
               : 0;
}

/* Returns 0, SQ_WRITES or -EROFS: whether the statement may run here. */
static int check_statement(struct sq_conn *c, sqlite3_stmt *stmt, struct sq_error *e)
{
    if (sqlite3_stmt_readonly(stmt))
        return 0;
    if (c->conf->read_only)
        return sq_error_set(e, -EROFS, "%s: the database was opened with read_only", c->conf->name);
    return c->reads_only ? SQ_WRITES : 0;
}

/* Runs a statement whose rows are wanted. */
static int collect_rows(struct sq_conn *c, sqlite3_stmt *stmt, duda_sqlite_rows_t **ret, struct sq_error *e)
{
    struct sq_builder b = {.bytes_max = c->conf->bytes_max};
    int err = step_rows(c, stmt, &b, e);
    if (err == 0 && !(*ret = sq_builder_make(&b, (unsigned)sqlite3_column_count(stmt))))
        err = set_result_error(c, -ENOMEM, e);
    sq_builder_release(&b);
    return err;
}

static int run_statement(struct sq_conn *c, sqlite3_stmt *stmt, duda_sqlite_rows_t **ret,
                         struct duda_sqlite_change *change, struct sq_error *e)
{
    int64_t before = sqlite3_total_changes64(c->db);
    int err = ret ? collect_rows(c, stmt, ret, e) : step_rows(c, stmt, NULL, e);
    if (change) {
        change->rows = sqlite3_total_changes64(c->db) == before ? 0 : sqlite3_changes64(c->db);
        change->last_id = sqlite3_last_insert_rowid(c->db);
    }
    sqlite3_reset(stmt);
    if ((err == -E2BIG || err == -ENOMEM) && c->in_transaction && !sqlite3_stmt_readonly(stmt))
        c->broken = *e; /* what it has written stays in the transaction */
    return err;
}

/* Undoes a transaction that the statement has begun, or notes that it has ended the one that runs. */
static int check_transaction(struct sq_conn *c, int err, struct sq_error *e)
{
    bool is_open = !sqlite3_get_autocommit(c->db);
    if (is_open == c->in_transaction)
        return err;
    if (is_open)
        sqlite3_exec(c->db, "ROLLBACK", NULL, NULL, NULL);
    if (err == 0)
        err = sq_error_set(e, -EINVAL, "%s: transactions are begun and ended by transaction(), not by SQL",
                           c->conf->name);
    if (!is_open)
        c->broken = *e;
    return err;
}

int sq_conn_run(struct sq_conn *c, const char *sql, const struct duda_sqlite_value *args, size_t n,
                duda_sqlite_rows_t **ret, struct duda_sqlite_change *change, struct sq_error *e)
{
    assert(c->db && sql && (args || !n));
    struct sq_statement *s = NULL;
    if (c->in_transaction && c->broken.err) {
        *e = c->broken;
        return e->err;
    }
    if (should_stop(c))
        return sq_conn_fail(c, SQLITE_INTERRUPT, e);
    int err = c->in_transaction ? 0 : check_file(c, e);
    if (err == 0)
        err = prepare_statement(c, sql, &s, e);
    if (err == 0)
        err = check_statement(c, s->stmt, e);
    if (err)
        return err;
    err = bind_values(c, s->stmt, args, n, e);
    if (err == 0)
        err = run_statement(c, s->stmt, ret, change, e);
    sqlite3_clear_bindings(s->stmt);
    err = check_transaction(c, err, e);
    if (err < 0 && ret) {
        mem->free(*ret);
        *ret = NULL;
    }
    return err;
}

/* ── transactions ── */

int sq_conn_sql(struct sq_conn *c, const char *sql, struct sq_error *e)
{
    assert(c->db && sql);
    int code = sqlite3_exec(c->db, sql, NULL, NULL, NULL);
    return code == SQLITE_OK ? 0 : sq_conn_fail(c, code, e);
}

int sq_conn_begin(struct sq_conn *c, struct sq_error *e)
{
    assert(!c->in_transaction);
    int err = should_stop(c) ? sq_conn_fail(c, SQLITE_INTERRUPT, e) : 0;
    if (err == 0 && c->conf->read_only)
        err = sq_error_set(e, -EROFS, "%s: the database was opened with read_only", c->conf->name);
    if (err == 0)
        err = check_file(c, e);
    if (err == 0)
        err = sq_conn_sql(c, "BEGIN IMMEDIATE", e);
    c->broken.err = 0;
    c->in_transaction = err == 0;
    return err;
}

int sq_conn_end(struct sq_conn *c, int err, struct sq_error *e)
{
    assert(c->in_transaction);
    c->in_transaction = false;
    if (c->broken.err) {
        *e = c->broken;
        err = e->err;
    }
    if (err >= 0 && should_stop(c))
        err = sq_conn_fail(c, SQLITE_INTERRUPT, e);
    if (err >= 0) {
        int failed = sq_conn_sql(c, "COMMIT", e);
        err = failed ? failed : err;
    }
    if (!sqlite3_get_autocommit(c->db))
        sqlite3_exec(c->db, "ROLLBACK", NULL, NULL, NULL);
    return err;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * A connection to a database: how it is opened, and the version of the database.
 */
#include "conn.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SQL_BYTES_MAX = 1000000, VALUE_BYTES_MAX = 1000000000 };

/* ── the version ── */

static int read_version(struct sq_conn *c, int64_t *ret, struct sq_error *e)
{
    sqlite3_stmt *stmt;
    int code = sqlite3_prepare_v2(c->db, "PRAGMA user_version", -1, &stmt, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_step(stmt);
    *ret = code == SQLITE_ROW ? sqlite3_column_int64(stmt, 0) : 0;
    int err = code == SQLITE_ROW ? 0 : sq_conn_fail(c, code, e);
    sqlite3_finalize(stmt);
    return err;
}

static int check_version(struct sq_conn *c, int64_t version, int64_t known, struct sq_error *e)
{
    if (version < 0 || version > known)
        return sq_error_set(e, -ENOTSUP,
                            "%s: the database has the version %lld, and this service knows %lld: it was changed by a "
                            "newer version of the service",
                            c->conf->name, (long long)version, (long long)known);
    if (version < known && c->conf->read_only)
        return sq_error_set(e, -EROFS, "%s: the database has the version %lld instead of %lld, and is read_only",
                            c->conf->name, (long long)version, (long long)known);
    return 0;
}

/* ── migrations ── */

/* Returns a number of the text, whatever white space is between its words (FNV-1a, 64 bits). */
static int64_t hash_sql(const char *sql)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    const char *spaces = " \t\r\n";
    for (sql += strspn(sql, spaces); *sql; sql++) {
        bool is_space = strchr(spaces, *sql);
        if (is_space)
            sql += strspn(sql, spaces) - 1;
        if (!is_space || sql[1])
            hash = (hash ^ (is_space ? ' ' : (unsigned char)*sql)) * UINT64_C(0x100000001b3);
    }
    return (int64_t)hash;
}

/* Checks that the migrations that were done are those of the service, as far as it is recorded. */
static int read_records(struct sq_conn *c, const char *const *migrations, int64_t version, bool *ret_has_table,
                        struct sq_error *e)
{
    sqlite3_stmt *stmt;
    int err = 0, code = sqlite3_prepare_v2(c->db, "SELECT number, hash FROM duda_migrations", -1, &stmt, NULL);
    *ret_has_table = code == SQLITE_OK;
    while (code == SQLITE_OK && err == 0 && (code = sqlite3_step(stmt)) == SQLITE_ROW) {
        int64_t n = sqlite3_column_int64(stmt, 0);
        if (n >= 1 && n <= version && sqlite3_column_int64(stmt, 1) != hash_sql(migrations[n - 1]))
            err = sq_error_set(e, -EINVAL, "%s: migration %lld (%.60s) has changed since it was done", c->conf->name,
                               (long long)n, migrations[n - 1]);
        code = SQLITE_OK;
    }
    sqlite3_finalize(stmt);
    return err;
}

static int record_migration(struct sq_conn *c, int64_t number, const char *sql, struct sq_error *e)
{
    char text[128];
    snprintf(text, sizeof(text), "INSERT OR IGNORE INTO duda_migrations VALUES (%lld, %lld)", (long long)number,
             (long long)hash_sql(sql));
    return sq_conn_sql(c, text, e);
}

static int run_migration(struct sq_conn *c, int64_t number, const char *sql, struct sq_error *e)
{
    struct sq_error reason;
    int err = sq_conn_sql(c, sql, &reason);
    if (err < 0)
        return sq_error_set(e, err, "%s: migration %lld (%.60s): %s", c->conf->name, (long long)number, sql,
                            reason.text + strlen(c->conf->name) + 2); /* after "NAME: " */
    if (sqlite3_get_autocommit(c->db))
        return sq_error_set(e, -EINVAL, "%s: migration %lld ends the transaction", c->conf->name, (long long)number);
    return record_migration(c, number, sql, e);
}

/* In a transaction: another process may have been faster. */
static int run_migrations(struct sq_conn *c, const char *const *migrations, int64_t known, struct sq_error *e)
{
    static const char records[] =
        "CREATE TABLE IF NOT EXISTS duda_migrations (number INTEGER PRIMARY KEY, hash INTEGER NOT NULL)";
    char sql[64];
    int64_t version;
    int err = read_version(c, &version, e);
    if (err == 0)
        err = check_version(c, version, known, e);
    if (err == 0)
        err = sq_conn_sql(c, records, e);
    for (int64_t i = 0; err == 0 && i < known; i++)
        err = i < version ? record_migration(c, i + 1, migrations[i], e) : run_migration(c, i + 1, migrations[i], e);
    snprintf(sql, sizeof(sql), "PRAGMA user_version = %lld", (long long)known);
    return err ? err : sq_conn_sql(c, sql, e);
}

int sq_migrate(struct sq_conn *c, const char *const *migrations, struct sq_error *e)
{
    int64_t known = 0, version;
    bool has_table = true;
    while (migrations && migrations[known])
        known++;
    int err = read_version(c, &version, e); /* also finds out whether the file is a database */
    if (err == 0 && migrations)
        err = check_version(c, version, known, e);
    if (err == 0 && migrations)
        err = read_records(c, migrations, version, &has_table, e);
    if (err || !migrations || (version == known && (has_table || !known || c->conf->read_only)))
        return err;
    err = sq_conn_begin(c, e);
    if (err == 0)
        err = sq_conn_end(c, run_migrations(c, migrations, known, e), e);
    sqlite3_set_last_insert_rowid(c->db, 0); /* of the records */
    return err;
}

/* ── opening ── */

/* PRAGMAs that take a value, and do not change what later calls on the connection depend on. */
static const char *const pragmas[] = {
    "analysis_limit",     "application_id", "defer_foreign_keys", "foreign_key_check", "foreign_key_list",
    "incremental_vacuum", "index_info",     "index_list",         "index_xinfo",       "integrity_check",
    "optimize",           "quick_check",    "table_info",         "table_list",        "table_xinfo",
    "user_version",       "wal_checkpoint",
};

/*
 * Refuses PRAGMAs that would set what all calls share: the wait for locks, the mode of the journal, even limits and
 * folders of the whole process. Without a value they only tell it.
 */
static int authorize_action(void *ctx, int action, const char *name, const char *value, const char *database,
                            const char *trigger)
{
    (void)ctx;
    (void)database;
    (void)trigger;
    if (action != SQLITE_PRAGMA || !value)
        return SQLITE_OK;
    for (size_t i = 0; i < MK_COUNT_OF(pragmas); i++)
        if (sqlite3_stricmp(pragmas[i], name) == 0)
            return SQLITE_OK;
    return SQLITE_DENY;
}

/* Settings of what SQL may do and hold. */
static void set_limits(struct sq_conn *c)
{
    uint64_t length = c->conf->bytes_max < VALUE_BYTES_MAX ? c->conf->bytes_max : VALUE_BYTES_MAX;
    sqlite3_db_config(c->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(c->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(c->db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, NULL);
    sqlite3_db_config(c->db, SQLITE_DBCONFIG_DQS_DML, 0, NULL);
    sqlite3_limit(c->db, SQLITE_LIMIT_LENGTH, (int)length);
    sqlite3_limit(c->db, SQLITE_LIMIT_SQL_LENGTH, SQL_BYTES_MAX);
    sqlite3_limit(c->db, SQLITE_LIMIT_ATTACHED, 0);
    sqlite3_limit(c->db, SQLITE_LIMIT_WORKER_THREADS, 0);
    sq_conn_watch(c);
}

/* Runs a PRAGMA that gives a value, and returns whether it is `wanted` (NULL: any). */
static int run_pragma(struct sq_conn *c, const char *sql, const char *wanted, struct sq_error *e)
{
    sqlite3_stmt *stmt;
    int code = sqlite3_prepare_v2(c->db, sql, -1, &stmt, NULL), err = 0;
    if (code == SQLITE_OK)
        code = sqlite3_step(stmt);
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        err = sq_conn_fail(c, code, e);
    else if (wanted && (code == SQLITE_DONE || strcmp((const char *)sqlite3_column_text(stmt, 0), wanted) != 0))
        err = sq_error_set(e, -ENOTSUP, "%s: %s has no effect on this file", c->conf->name, sql);
    sqlite3_finalize(stmt);
    return err;
}

static int limit_file(struct sq_conn *c, struct sq_error *e)
{
    char sql[64];
    sqlite3_stmt *stmt;
    int64_t page = 4096;
    if (sqlite3_prepare_v2(c->db, "PRAGMA page_size", -1, &stmt, NULL) == SQLITE_OK && sqlite3_step(stmt) == SQLITE_ROW)
        page = sqlite3_column_int64(stmt, 0);
    sqlite3_finalize(stmt);
    uint64_t pages = c->conf->file_bytes_max / (uint64_t)page;
    snprintf(sql, sizeof(sql), "PRAGMA max_page_count = %llu", (unsigned long long)(pages ? pages : 1));
    return run_pragma(c, sql, NULL, e);
}

/* SQLite opens a file that cannot be written for reading, without a word. */
static int check_writable(struct sq_conn *c, struct sq_error *e)
{
    return sqlite3_db_readonly(c->db, "main") == 1 ? sq_conn_fail(c, SQLITE_READONLY, e) : 0;
}

static int set_up(struct sq_conn *c, struct sq_error *e)
{
    bool writes = !c->reads_only && !c->conf->read_only;
    int err = writes ? check_writable(c, e) : 0;
    if (err == 0 && writes)
        err = run_pragma(c, "PRAGMA journal_mode=WAL", "wal", e);
    if (err == 0)
        err = sq_conn_sql(c, "PRAGMA synchronous=NORMAL; PRAGMA foreign_keys=ON", e);
    if (err == 0 && writes && c->conf->file_bytes_max)
        err = limit_file(c, e);
    if (err == 0 && !writes)
        err = sq_conn_sql(c, "PRAGMA query_only=ON", e);
    if (err == 0)
        sqlite3_set_authorizer(c->db, authorize_action, NULL);
    return err;
}

/* SQLite tries to open a file that it cannot make for reading, too, and then says that there is none. */
static int explain_open(struct sq_conn *c, int code, struct sq_error *e)
{
    const struct sq_conf *conf = c->conf;
    size_t len = (size_t)(conf->name - conf->path);
    char folder[PATH_MAX];
    int err = sq_conn_fail(c, code, e);
    if (err != -ENOENT || conf->read_only || len >= sizeof(folder))
        return err;
    memcpy(folder, len ? conf->path : ".", len ? len : 1);
    folder[len ? len : 1] = '\0';
    if (faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) == 0)
        return err;
    return sq_error_set(e, -errno, "%s: unable to make the database in %s: %s", conf->name, folder, strerror(errno));
}

int sq_conn_open(struct sq_conn *c, bool reads_only, struct sq_error *e)
{
    int how = c->conf->read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
    if (!c->conf->read_only && !reads_only)
        how |= SQLITE_OPEN_CREATE;
    how |= SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_EXRESCODE;
    c->reads_only = reads_only;
    int code = sqlite3_open_v2(c->conf->path, &c->db, how, NULL);
    int err = code == SQLITE_OK ? 0 : explain_open(c, code, e);
    if (err == 0) {
        set_limits(c);
        err = set_up(c, e);
    }
    if (err)
        sq_conn_close(c);
    return err;
}

void sq_conn_close(struct sq_conn *c)
{
    for (size_t i = 0; i < SQ_STATEMENTS_MAX; i++) {
        sqlite3_finalize(c->statements[i].stmt);
        c->statements[i].stmt = NULL;
    }
    sqlite3_close(c->db);
    c->db = NULL;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * A connection to a database: its settings, prepared statements, limits of time. One thread at a time uses it.
 */
#ifndef DUDA_PACKAGES_SQLITE_CONN_H
#define DUDA_PACKAGES_SQLITE_CONN_H

#include "error.h"
#include "rows.h"

#include <monkey/base/time.h>

enum { SQ_STATEMENTS_MAX = 32 };

/* The settings of a database, with all defaults. */
struct sq_conf {
    char *path;
    const char *name; /* the last part of the path */
    bool read_only;
    unsigned readers;
    uint32_t busy_ms, query_ms, rows_max, waiting_max;
    uint64_t bytes_max, file_bytes_max;
};

/* When a call ends, in milliseconds of mk_time_monotonic_ms(). */
struct sq_deadline {
    uint64_t busy_ms; /* waits for locks */
    uint64_t end_ms;
};

struct sq_statement {
    sqlite3_stmt *stmt;
    uint64_t last_use;
};

struct sq_conn {
    sqlite3 *db;
    const struct sq_conf *conf;
    bool (*stopping)(void); /* whether the call should end early */
    bool reads_only;
    bool in_transaction;
    bool was_stopped;            /* the call was ended by stopping() */
    struct sq_deadline deadline; /* of the call that runs */
    struct sq_error broken;      /* the transaction has ended, or must be undone */
    uint64_t uses;
    struct sq_statement statements[SQ_STATEMENTS_MAX];
};

/*
 * Opens a connection that only reads, or the one that writes, which must come first. `c` is zeroed but for `conf` and
 * `stopping`, which may be NULL. Returns 0 or -errno; after an error sq_conn_close() is not needed.
 */
int sq_conn_open(struct sq_conn *c, bool reads_only, struct sq_error *e);
void sq_conn_close(struct sq_conn *c);

enum { SQ_WRITES = 1 };

/*
 * Runs one statement. `ret`: gets the rows, for mem->free(), or NULL; NULL: they are dropped. Returns 0, -errno, or
 * SQ_WRITES: it was not run, because it writes, and the connection only reads.
 */
int sq_conn_run(struct sq_conn *c, const char *sql, const struct duda_sqlite_value *args, size_t n,
                duda_sqlite_rows_t **ret, struct duda_sqlite_change *change, struct sq_error *e);

/* Begin and end a transaction that writes. end() undoes it if `err` is negative, and returns 0, `err` or -errno. */
int sq_conn_begin(struct sq_conn *c, struct sq_error *e);
int sq_conn_end(struct sq_conn *c, int err, struct sq_error *e);

/* ── for opening ── */

/* Sets the functions that end calls at their deadline. */
void sq_conn_watch(struct sq_conn *c);
/* Runs SQL of any number of statements, without arguments and rows. Returns 0 or -errno. */
int sq_conn_sql(struct sq_conn *c, const char *sql, struct sq_error *e);
/* Sets the error of a call of SQLite that has returned `code`. Returns -errno. */
int sq_conn_fail(struct sq_conn *c, int code, struct sq_error *e);

/* Brings the database to the version that `migrations` lead to (sqlite.h). Returns 0 or -errno. */
int sq_migrate(struct sq_conn *c, const char *const *migrations, struct sq_error *e);

#endif

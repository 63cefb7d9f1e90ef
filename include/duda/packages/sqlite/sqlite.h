// SPDX-License-Identifier: Apache-2.0
/*
 * The package sqlite: databases in files, by SQLite 3 (docs/reference/duda/sqlite.md).
 *
 *     duda_load_package(sqlite, "sqlite");
 *     db = sqlite->open(&(struct duda_sqlite_conf){.path = "shop.db", .migrations = migrations});
 *     ...
 *     duda_sqlite_rows_t *rows;                                                         in a dthread
 *     int err = sqlite->query(db, &rows, "SELECT name FROM goods WHERE price < ?",
 *                             DUDA_SQLITE_ARGS(duda_sqlite_int(100)));
 *     while (err == 0 && sqlite->next(rows))
 *         response->printf(dr, "%s\n", sqlite->get_text(rows, 0));
 *
 * A database has one connection that writes and some that read, in WAL mode: readers and the writer do not wait for
 * each other. They work on the threads of the object `task`; a worker never waits for the disk or for a lock:
 *
 *     query() that reads    ─► one of the connections that read  ─┐
 *     exec(), transaction() ─► the one that writes, in order     ─┴─► the caller continues with the result
 *
 * Where query(), exec() and transaction() may be called:
 *
 *     dthreads                            the dthread waits, and its worker serves others
 *     functions of transaction()          it is part of the transaction
 *     duda_main(), worker->spawn()        the thread waits
 *     other callbacks of a worker         -EPERM, which is logged: use the forms with a callback, query_then() ...
 *
 * Errors are a negative number, and a sentence: error(). Those that are not the fault of what a client has sent are
 * logged: the same error of a statement at most once in ten seconds for each database, and no more than 8 of them.
 *
 *     -EBUSY         the database is locked by another connection or process, and `busy_ms` are over
 *     -ETIMEDOUT     the call has taken `query_ms`; what it has written was undone, unless the sentence says otherwise
 *     -EEXIST        there is such a row already: UNIQUE, PRIMARY KEY
 *     -ERANGE        a value breaks another constraint: NOT NULL, CHECK, FOREIGN KEY
 *     -E2BIG         the result has more rows or bytes than allowed, or a value is too large
 *     -EINVAL        SQL that is wrong, or does not fit the arguments
 *     -ENOENT        open(): the file or its folder is missing
 *     -EACCES        open(): the server's user must not open it
 *     -EROFS         the file or its folder is read-only, or the database was opened with `read_only`
 *     -ESTALE        the file was removed or replaced since open(): the service must be loaded again
 *     -EUCLEAN       the file is damaged, or is no database
 *     -ENOTSUP       open(): the database is from a newer version of the service
 *     -ENOSPC        the disk is full, or `file_bytes_max` reached
 *     -EIO           the disk has an error
 *     -EAGAIN        `waiting_max` calls wait already, or the service has too many tasks (task.h)
 *     -ENOMEM
 *     -ECONNABORTED, -ECANCELED, -EPERM   as those of waits (dthread.h); a write may be done nevertheless
 *
 * SQL is one statement in UTF-8. Each connection keeps its last 32 prepared statements: give values as arguments
 * (`?`) rather than as parts of the SQL. ATTACH, VACUUM and extensions are not available; foreign keys are checked.
 * PRAGMAs tell the settings of the connections and do not change them.
 */
#ifndef DUDA_PACKAGES_SQLITE_H
#define DUDA_PACKAGES_SQLITE_H

#include "../../package.h"

#ifndef SQLITE_OK
#define SQLITE_OK 0
#endif
#ifndef SQLITE_ROW
#define SQLITE_ROW 100
#endif
#ifndef SQLITE_DONE
#define SQLITE_DONE 101
#endif

/* ── values ── */

enum duda_sqlite_type {
    DUDA_SQLITE_NULL,
    DUDA_SQLITE_INT,
    DUDA_SQLITE_DOUBLE,
    DUDA_SQLITE_TEXT,
    DUDA_SQLITE_BLOB,
};

/* An argument; the functions below make them. A text or blob is copied by the call that gets it. */
struct duda_sqlite_value {
    enum duda_sqlite_type type;
    size_t len; /* bytes of a text or blob */
    union {
        int64_t integer;
        double real;
        const void *bytes;
    };
};

static inline struct duda_sqlite_value duda_sqlite_null(void)
{
    struct duda_sqlite_value value;
    value.type = DUDA_SQLITE_NULL;
    value.len = 0;
    value.integer = 0;
    return value;
}

static inline struct duda_sqlite_value duda_sqlite_int(int64_t integer)
{
    struct duda_sqlite_value value = duda_sqlite_null();
    value.type = DUDA_SQLITE_INT;
    value.integer = integer;
    return value;
}

static inline struct duda_sqlite_value duda_sqlite_double(double real)
{
    struct duda_sqlite_value value = duda_sqlite_null();
    value.type = DUDA_SQLITE_DOUBLE;
    value.real = real;
    return value;
}

/* NULL is the value NULL, also of a blob. */
static inline struct duda_sqlite_value duda_sqlite_text_n(const char *text, size_t len)
{
    struct duda_sqlite_value value = duda_sqlite_null();
    if (text) {
        value.type = DUDA_SQLITE_TEXT;
        value.len = len;
        value.bytes = text;
    }
    return value;
}

static inline struct duda_sqlite_value duda_sqlite_text(const char *text)
{
    return duda_sqlite_text_n(text, text ? __builtin_strlen(text) : 0);
}

static inline struct duda_sqlite_value duda_sqlite_blob(const void *bytes, size_t len)
{
    struct duda_sqlite_value value = duda_sqlite_text_n((const char *)bytes, len);
    if (bytes)
        value.type = DUDA_SQLITE_BLOB;
    return value;
}

/*
 * The last two arguments of query() and others: an array of the values, which compilers check, and their number. C++
 * has no such arrays: there it is a separate variable.
 */
#define DUDA_SQLITE_ARGS(...) \
    (const struct duda_sqlite_value[]){__VA_ARGS__}, \
        sizeof((const struct duda_sqlite_value[]){__VA_ARGS__}) / sizeof(struct duda_sqlite_value)
#define DUDA_SQLITE_NO_ARGS NULL, 0

/* ── databases ── */

typedef struct duda_sqlite duda_sqlite_t;

/* Fields that are 0 have the value in brackets. */
struct duda_sqlite_conf {
    const char *path; /* of the file; a relative one is in DataDir, which must be set (-EINVAL) */
    /*
     * The steps that made the database what the service needs: SQL of one or more statements each, with NULL after the
     * last one. PRAGMA user_version of the file says how many were done; open() does those that are missing, all or
     * none. A file on which more were done than there are is one of a newer version: -ENOTSUP. Add new steps at the
     * end, and leave the old ones alone: one that has changed since it was done, other than in its white space, is
     * -EINVAL, by the table duda_migrations. NULL: the version does not matter.
     */
    const char *const *migrations;
    bool read_only;          /* the file must exist, and nothing is written [it is made if it is missing] */
    unsigned readers;        /* connections that read, 1 to 16 [2] */
    uint32_t busy_ms;        /* how long a call waits for locks of other connections and processes [5000] */
    uint32_t query_ms;       /* how long a call takes at most, with all of its waits [10000] */
    uint32_t rows_max;       /* of a result [10000] */
    uint64_t bytes_max;      /* of a result, with 24 for each value, and of a single value [16 MB]; up to 1 GB */
    uint64_t file_bytes_max; /* of the file [no limit but that of SQLite] */
    uint32_t waiting_max;    /* calls that have not ended, per connection [1000] */
};

/* The result of a query: one block of memory. For one thread at a time. */
typedef struct duda_sqlite_rows duda_sqlite_rows_t;

/* What a statement has changed. */
struct duda_sqlite_change {
    int64_t rows;    /* that it has inserted, updated or deleted */
    int64_t last_id; /* the rowid of the last row that this connection has inserted */
};

/* What a callback gets. */
struct duda_sqlite_result {
    int err;                          /* 0 or as above; of transaction_then() also what its function has returned */
    const char *error;                /* the sentence, valid until the callback returns; NULL: no error */
    duda_sqlite_rows_t *rows;         /* of query_then(); else NULL. They are freed when the callback returns, unless it
                                       * sets this to NULL: then they are its own, for free() or gc->add() */
    struct duda_sqlite_change change; /* of exec_then() */
};

/* Called in the worker of the request. `dr` is NULL if the call had none. */
typedef void (*duda_sqlite_fn)(duda_request_t *dr, struct duda_sqlite_result *result, void *data);

/* A function of a transaction. A negative number undoes all that was written. */
typedef int (*duda_sqlite_transaction_fn)(duda_sqlite_t *db, void *data);

/* ── the original API ── */

typedef struct sqlite_db sqlite_db_t;
typedef struct sqlite_handle sqlite_handle_t;

/* What the callback of exec() gets as its first argument. */
struct sqlite_cb_data {
    duda_request_t *dr;
    void *data;
};

/* Some functions of the original have names that are those of other functions for new services. */
#if DUDA_API_LEVEL < 3
#define DUDA_SQLITE_OLD(name) name
#define DUDA_SQLITE_NEW(name) new_##name
#else
#define DUDA_SQLITE_OLD(name) old_##name
#define DUDA_SQLITE_NEW(name) name
#endif

struct duda_api_sqlite {
    /*
     * ── the original API, for services of levels 0 to 2. These functions work in the calling thread, and block it:
     * they wait up to half a second for a lock. Failures are logged. Any thread. ──
     */
    /* Returns the database, which is made if it is missing, or NULL. A relative path is one in DataDir, if it is set.
     */
    sqlite_db_t *(*DUDA_SQLITE_OLD(open))(const char *path);
    /* Prepares a query. Returns 0 or -1. */
    int (*DUDA_SQLITE_OLD(dump))(sqlite_db_t *db, const char *sql, sqlite_handle_t **ret_handle);
    /*
     * Runs SQL, also of several statements, and calls `fn`, which may be NULL, for each row with a struct
     * sqlite_cb_data; another result than 0 ends it. Returns 0 or -1.
     */
    int (*DUDA_SQLITE_OLD(exec))(duda_request_t *dr, sqlite_db_t *db, const char *sql,
                                 int (*fn)(void *cb_data, int n, char **values, char **names), void *data);
    /* Returns SQLITE_ROW, 0 (there are no more rows) or -1. */
    int (*DUDA_SQLITE_OLD(step))(sqlite_handle_t *handle);
    /* Return the value in a column of the row; 0 or NULL if there is none. A text is valid until the next step(). */
    int (*DUDA_SQLITE_OLD(get_int))(sqlite_handle_t *handle, int column);
    double (*DUDA_SQLITE_OLD(get_double))(sqlite_handle_t *handle, int column);
    const unsigned char *(*DUDA_SQLITE_OLD(get_text))(sqlite_handle_t *handle, int column);
    /* Frees a query. Returns 0. */
    int (*DUDA_SQLITE_OLD(done))(sqlite_handle_t *handle);
    /* Closes a database, with its queries. Returns 0. What is left is closed with the service. */
    int (*DUDA_SQLITE_OLD(close))(sqlite_db_t *db);

    /* ── databases on the pool, for services of level 3 ── */

    /*
     * Opens a database, which is closed with the service; in duda_main(), which waits for it, `busy_ms` at most for
     * locks. Returns NULL on failure, with errno as above; error() says why, and it is logged.
     */
    duda_sqlite_t *(*DUDA_SQLITE_NEW(open))(const struct duda_sqlite_conf *conf);
    /*
     * Runs a statement, and copies its rows, which are for free() or gc->add(). One that writes, and gives rows by
     * RETURNING, runs where exec() does, in two steps, and is a transaction: if it fails, nothing was written. Returns
     * 0 or an error. `*ret` is NULL then.
     */
    int (*query)(duda_sqlite_t *db, duda_sqlite_rows_t **ret, const char *sql, const struct duda_sqlite_value *args,
                 size_t n);
    /* Runs a statement that writes; rows that it gives are dropped. `ret` may be NULL. Returns 0 or an error. */
    int (*DUDA_SQLITE_NEW(exec))(duda_sqlite_t *db, struct duda_sqlite_change *ret, const char *sql,
                                 const struct duda_sqlite_value *args, size_t n);
    /*
     * Calls `fn` in a thread of the pool as one transaction, which holds the lock for writing from its begin: its
     * query() and exec() see and change the database as nothing else does meanwhile. `fn` must not use requests. It is
     * not called any more when transaction() has returned: so `data` may be on the stack, also of a dthread.
     * Returns what `fn` has returned, if that is 0 or more and the transaction is complete; otherwise the error, and
     * nothing was written.
     */
    int (*transaction)(duda_sqlite_t *db, duda_sqlite_transaction_fn fn, void *data);

    /*
     * The same for callbacks: they return at once, and `fn` is called later, once, unless the request or the service
     * ends before. `dr` may be NULL. Return 0, or an error after which `fn` is not called.
     */
    int (*query_then)(duda_request_t *dr, duda_sqlite_t *db, const char *sql, const struct duda_sqlite_value *args,
                      size_t n, duda_sqlite_fn fn, void *data);
    int (*exec_then)(duda_request_t *dr, duda_sqlite_t *db, const char *sql, const struct duda_sqlite_value *args,
                     size_t n, duda_sqlite_fn fn, void *data);
    int (*transaction_then)(duda_request_t *dr, duda_sqlite_t *db, duda_sqlite_transaction_fn work, duda_sqlite_fn fn,
                            void *data);

    /*
     * Returns the sentence of the last call that has failed in this thread: "shop.db: UNIQUE constraint failed:
     * goods.name". Valid until the next call, or the next wait of the dthread; NULL: the last call has not failed.
     */
    const char *(*error)(void);

    /* ── results; NULL is one without rows ── */

    /* Goes to the next row, at first to the first one. Returns false after the last one, and then begins again. */
    bool (*next)(duda_sqlite_rows_t *rows);
    size_t (*count)(const duda_sqlite_rows_t *rows);
    unsigned (*columns)(const duda_sqlite_rows_t *rows);
    /* Returns the number of the first column of this name, from 0 on, or -1. */
    int (*column)(const duda_sqlite_rows_t *rows, const char *name);
    /*
     * The value in a column of the row. What is missing (a row, a column) is NULL.
     * get_int(): of a double its integer part, from INT64_MIN to INT64_MAX; else 0. get_double(): also of an integer;
     * else 0. get_text(): of a text, with a NUL after it; else NULL. get_bytes(): of a text or blob; else NULL and 0.
     */
    enum duda_sqlite_type (*type)(const duda_sqlite_rows_t *rows, int column);
    int64_t (*DUDA_SQLITE_NEW(get_int))(const duda_sqlite_rows_t *rows, int column);
    double (*DUDA_SQLITE_NEW(get_double))(const duda_sqlite_rows_t *rows, int column);
    const char *(*DUDA_SQLITE_NEW(get_text))(const duda_sqlite_rows_t *rows, int column);
    const void *(*get_bytes)(const duda_sqlite_rows_t *rows, int column, size_t *ret_len);
};

DUDA_PACKAGE(struct duda_api_sqlite, sqlite)

#define sqlite_foreach(handle) while (sqlite->step(handle) == SQLITE_ROW)
#ifdef DUDA_OLD_SERVICE
#define SQLITE_FOREACH sqlite_foreach
#endif

#endif

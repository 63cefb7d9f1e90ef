// SPDX-License-Identifier: Apache-2.0
/*
 * The package sqlite.
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

typedef struct sqlite_db sqlite_db_t;
typedef struct sqlite_handle sqlite_handle_t;

/* What the callback of exec() gets as its first argument. */
struct sqlite_cb_data {
    duda_request_t *dr;
    void *data;
};

struct duda_api_sqlite {
    /* Returns the database, or NULL. */
    sqlite_db_t *(*open)(const char *path);
    /* Prepares a query. Returns 0 or -1. */
    int (*dump)(sqlite_db_t *db, const char *sql, sqlite_handle_t **ret_handle);
    int (*exec)(duda_request_t *dr, sqlite_db_t *db, const char *sql,
                int (*fn)(void *cb_data, int n, char **values, char **names), void *data);
    /* Returns SQLITE_ROW, 0 (there are no more rows) or -1. */
    int (*step)(sqlite_handle_t *handle);
    int (*get_int)(sqlite_handle_t *handle, int column);
    double (*get_double)(sqlite_handle_t *handle, int column);
    const unsigned char *(*get_text)(sqlite_handle_t *handle, int column);
    int (*done)(sqlite_handle_t *handle);
    int (*close)(sqlite_db_t *db);
};

DUDA_PACKAGE(struct duda_api_sqlite, sqlite)

#define sqlite_foreach(handle) while (sqlite->step(handle) == SQLITE_ROW)

#endif

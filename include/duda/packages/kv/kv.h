// SPDX-License-Identifier: Apache-2.0
/*
 * The package kv: keys and values in memory. A length of -1 is that of a string.
 */
#ifndef DUDA_PACKAGES_KV_H
#define DUDA_PACKAGES_KV_H

#include "../../package.h"

enum { DUDA_KV_OK, DUDA_KV_BUSY, DUDA_KV_NOTFOUND, DUDA_KV_IOERR, DUDA_KV_NOMEM };

typedef int64_t kv_int_t;
typedef struct kv_conn kv_conn_t;
typedef struct kv_cursor kv_cursor_t;

struct kv_conn {
    void *db;
};

/* All functions that return an int return DUDA_KV_OK or another of these results, unless they say otherwise. */
struct duda_api_kv {
    int (*init)(kv_conn_t *conn);
    int (*close)(kv_conn_t *conn);
    int (*store)(kv_conn_t *conn, const void *key, int key_len, const void *data, kv_int_t len);
    int (*store_fmt)(kv_conn_t *conn, const void *key, int key_len, const char *format, ...);
    int (*append)(kv_conn_t *conn, const void *key, int key_len, const void *data, kv_int_t len);
    int (*append_fmt)(kv_conn_t *conn, const void *key, int key_len, const char *format, ...);
    /* Copies the value to `buffer`, or only sets *len if that is NULL. */
    int (*fetch)(kv_conn_t *conn, const void *key, int key_len, void *buffer, kv_int_t *len);
    int (*fetch_callback)(kv_conn_t *conn, const void *key, int key_len,
                          int (*fn)(const void *data, unsigned int len, void *user), void *user);
    int (*delete)(kv_conn_t *conn, const void *key, int key_len);

    int (*cursor_init)(kv_conn_t *conn, kv_cursor_t **ret_cursor);
    int (*cursor_release)(kv_conn_t *conn, kv_cursor_t *cursor);
    int (*cursor_reset)(kv_cursor_t *cursor);
    int (*cursor_valid)(kv_cursor_t *cursor); /* 1 or 0 */
    int (*cursor_first)(kv_cursor_t *cursor);
    int (*cursor_last)(kv_cursor_t *cursor);
    int (*cursor_next)(kv_cursor_t *cursor);
    int (*cursor_prev)(kv_cursor_t *cursor);
    int (*cursor_key)(kv_cursor_t *cursor, void *buffer, int *len);
    int (*cursor_data)(kv_cursor_t *cursor, void *buffer, kv_int_t *len);
};

DUDA_PACKAGE(struct duda_api_kv, kv)

#define KV_CURSOR_FOREACH(cursor) for (kv->cursor_first(cursor); kv->cursor_valid(cursor); kv->cursor_next(cursor))

#endif

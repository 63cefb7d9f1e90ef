// SPDX-License-Identifier: Apache-2.0
/*
 * The package kv: keys and values in memory, shared by the workers of a service, sorted by the bytes of the keys. They
 * end with the service: with the server, and with a new version of the service.
 *
 *     duda_load_package(kv, "kv");
 *     counters = kv->open(&(struct duda_kv_conf){.items_max = 1000, .evicts = true});
 *     ...
 *     kv->add(counters, "visits", 1, 0, &n);
 *
 * Functions may be called in duda_main() and in callbacks and threads of the service that has opened the store. Each is
 * one step for all threads; none waits for a disk.
 */
#ifndef DUDA_PACKAGES_KV_H
#define DUDA_PACKAGES_KV_H

#include "../../package.h"

/* `delete` is a keyword of C++. */
#ifdef __cplusplus
#define DUDA_KV_DELETE delete_
#else
#define DUDA_KV_DELETE delete
#endif

enum { DUDA_KV_OK, DUDA_KV_BUSY, DUDA_KV_NOTFOUND, DUDA_KV_IOERR, DUDA_KV_NOMEM };

enum { DUDA_KV_KEY_BYTES = 1024 }; /* of a key at most */

typedef int64_t kv_int_t;

/* Names of the library on which the original package was. */
#if defined(DUDA_OLD_SERVICE) && !defined(UNQLITE_OK)
typedef kv_int_t unqlite_int64;
#define UNQLITE_OK DUDA_KV_OK
#define UNQLITE_BUSY DUDA_KV_BUSY
#define UNQLITE_NOTFOUND DUDA_KV_NOTFOUND
#define UNQLITE_IOERR DUDA_KV_IOERR
#define UNQLITE_NOMEM DUDA_KV_NOMEM
#define KV_OK DUDA_KV_OK
#define KV_BUSY DUDA_KV_BUSY
#define KV_NOTFOUND DUDA_KV_NOTFOUND
#define KV_IOERR DUDA_KV_IOERR
#define KV_NOMEM DUDA_KV_NOMEM
#endif

typedef struct kv_conn kv_conn_t;
typedef struct kv_cursor kv_cursor_t;
typedef struct duda_kv duda_kv_t;

/* Services of 2013 have a pointer, kv_conn_t *conn, and call init(&conn) and store(conn, ...), which works, too. */
struct kv_conn {
    void *db;
};

/* Fields that are 0 have the value in brackets. */
struct duda_kv_conf {
    uint64_t bytes_max; /* of keys and values, with 96 bytes for each item [64 MB] */
    uint32_t items_max; /* [1000000] */
    bool evicts;        /* a full store removes the items whose last write is the longest ago [it gives -ENOSPC] */
};

struct duda_api_kv {
    /*
     * ── the original API. All functions that return an int return DUDA_KV_OK or another of these results, unless they
     * say otherwise. A length of -1 is that of a string. DUDA_KV_NOMEM: also a store of 64 MB or 1,000,000 items is
     * full. DUDA_KV_IOERR: an argument is wrong. ──
     */
    int (*init)(kv_conn_t *conn);
    int (*close)(kv_conn_t *conn);
    int (*store)(kv_conn_t *conn, const void *key, int key_len, const void *data, kv_int_t len);
    int (*store_fmt)(kv_conn_t *conn, const void *key, int key_len, const char *format, ...);
    int (*append)(kv_conn_t *conn, const void *key, int key_len, const void *data, kv_int_t len);
    int (*append_fmt)(kv_conn_t *conn, const void *key, int key_len, const char *format, ...);
    /*
     * Copies up to *len bytes to `buffer`, with a NUL after them if there is room, and sets *len to their number
     * without it; NULL: only sets it to that of the value.
     */
    int (*fetch)(kv_conn_t *conn, const void *key, int key_len, void *buffer, kv_int_t *len);
    /* Calls `fn` with the value, which is valid until it returns; if that is not 0 the result is DUDA_KV_IOERR. */
    int (*fetch_callback)(kv_conn_t *conn, const void *key, int key_len,
                          int (*fn)(const void *data, unsigned int len, void *user), void *user);
    int (*DUDA_KV_DELETE)(kv_conn_t *conn, const void *key, int key_len);

    /* A cursor is for one thread. Others may write and remove meanwhile, also the item that it is at. */
    int (*cursor_init)(kv_conn_t *conn, kv_cursor_t **ret_cursor);
    int (*cursor_release)(kv_conn_t *conn, kv_cursor_t *cursor);
    int (*cursor_reset)(kv_cursor_t *cursor);
    int (*cursor_valid)(kv_cursor_t *cursor); /* 1 or 0 */
    int (*cursor_first)(kv_cursor_t *cursor);
    int (*cursor_last)(kv_cursor_t *cursor);
    int (*cursor_next)(kv_cursor_t *cursor);
    int (*cursor_prev)(kv_cursor_t *cursor);
    /* As fetch(). DUDA_KV_NOTFOUND: the cursor is not valid. */
    int (*cursor_key)(kv_cursor_t *cursor, void *buffer, int *len);
    int (*cursor_data)(kv_cursor_t *cursor, void *buffer, kv_int_t *len);

    /*
     * ── stores with types and limits. Keys are strings of 1 to 1,024 bytes, else -EINVAL. `ttl_s`: the item ends after
     * so many seconds, 0: never ──
     */

    /* Makes a store; `conf` NULL: all defaults. It is freed with the service. Returns NULL with errno on failure. */
    duda_kv_t *(*open)(const struct duda_kv_conf *conf);
    /* Sets a value. Returns 0, -EINVAL, -ENOSPC (the store is full, or the item too large for it) or -ENOMEM. */
    int (*put)(duda_kv_t *store, const char *key, const void *value, size_t len, uint32_t ttl_s);
    /* The same if there is no such key, else -EEXIST: the first one wins. */
    int (*put_new)(duda_kv_t *store, const char *key, const void *value, size_t len, uint32_t ttl_s);
    /* Returns a copy of the value, with a NUL after it that does not count, for free(); NULL: none, or no memory. */
    char *(*get)(duda_kv_t *store, const char *key, size_t *ret_len);
    /*
     * Adds to a number, which is kept as decimal digits; a missing one is 0, and ends after `ttl_s`. `*ret` is the sum;
     * `ret` may be NULL. After an error the value is as before.
     * Returns 0, -EINVAL (the key; the value is no number), -ERANGE, -ENOSPC or -ENOMEM.
     */
    int (*add)(duda_kv_t *store, const char *key, int64_t n, uint32_t ttl_s, int64_t *ret);
    /* Returns 0, -EINVAL or -ENOENT. */
    int (*remove)(duda_kv_t *store, const char *key);
    /*
     * Calls `fn` for each item whose key begins with `prefix`, in their order, until it returns another value than 0,
     * which is the result. It may write and remove; items of other threads may be missing or new. Returns 0, -EINVAL or
     * -ENOMEM.
     */
    int (*each)(duda_kv_t *store, const char *prefix,
                int (*fn)(const char *key, const char *value, size_t len, void *data), void *data);
    /* Returns the number of items. */
    size_t (*count)(duda_kv_t *store);
};

DUDA_PACKAGE(struct duda_api_kv, kv)

#define KV_CURSOR_FOREACH(cursor) for (kv->cursor_first(cursor); kv->cursor_valid(cursor); kv->cursor_next(cursor))

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * The package kv: the calls of the original (kv.h).
 */
#include "kv.h"

#include <duda/mem.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct kv_cursor {
    struct duda_kv *store;
    struct mk_str key; /* of the item that it is at; `p` NULL: not valid */
};

static int to_result(int err)
{
    if (err == 0)
        return DUDA_KV_OK;
    if (err == -ENOENT)
        return DUDA_KV_NOTFOUND;
    return err == -ENOMEM || err == -ENOSPC ? DUDA_KV_NOMEM : DUDA_KV_IOERR;
}

/* ── stores ── */

static int init_conn(kv_conn_t *conn)
{
    if (!conn)
        return DUDA_KV_IOERR;
    conn->db = kv_open(NULL);
    return conn->db ? DUDA_KV_OK : to_result(-errno);
}

static int close_store(kv_conn_t *conn)
{
    void *store = conn ? conn->db : NULL;
    int err = store ? kv_close(store) : -EINVAL;
    if (err == 0 && store != (void *)conn)
        conn->db = NULL;
    return to_result(err);
}

/* Returns whether the arguments are a store and a key. */
static bool get_key(const kv_conn_t *conn, const void *key, int len, struct mk_str *ret)
{
    if (!conn || !conn->db || !key)
        return false;
    *ret = len < 0 ? mk_str_c(key) : mk_str(key, (size_t)len);
    return ret->len && ret->len <= DUDA_KV_KEY_BYTES;
}

/* ── writing ── */

static int write_value(kv_conn_t *conn, enum kv_write how, const void *key, int key_len, const void *data, kv_int_t len)
{
    struct mk_str k;
    if (!get_key(conn, key, key_len, &k) || (!data && len != 0))
        return DUDA_KV_IOERR;
    struct duda_kv *store = conn->db;
    struct mk_str value = len < 0 ? mk_str_c(data) : mk_str(data, (size_t)len);
    return to_result(kv_table_write(&store->table, how, k, value, UINT64_MAX, mk_time_monotonic_ms()));
}

/* Formats a text for mem->free(); `.p` is NULL without memory, or if the format is wrong. */
static struct mk_str format_text(const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int len = vsnprintf(NULL, 0, format, again);
    va_end(again);
    char *text = len < 0 ? NULL : mem->alloc((size_t)len + 1);
    if (!text)
        return MK_STR_NONE;
    vsnprintf(text, (size_t)len + 1, format, args);
    return mk_str(text, (size_t)len);
}

static int write_format(kv_conn_t *conn, enum kv_write how, const void *key, int key_len, const char *format,
                        va_list args)
{
    struct mk_str text = format ? format_text(format, args) : MK_STR_NONE;
    if (!text.p)
        return format ? DUDA_KV_NOMEM : DUDA_KV_IOERR;
    int result = write_value(conn, how, key, key_len, text.p, (kv_int_t)text.len);
    mem->free((char *)(uintptr_t)text.p);
    return result;
}

static int store_value(kv_conn_t *conn, const void *key, int key_len, const void *data, kv_int_t len)
{
    return write_value(conn, KV_PUT, key, key_len, data, len);
}

static int append_value(kv_conn_t *conn, const void *key, int key_len, const void *data, kv_int_t len)
{
    return write_value(conn, KV_APPEND, key, key_len, data, len);
}

static int store_format(kv_conn_t *conn, const void *key, int key_len, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int result = write_format(conn, KV_PUT, key, key_len, format, args);
    va_end(args);
    return result;
}

static int append_format(kv_conn_t *conn, const void *key, int key_len, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int result = write_format(conn, KV_APPEND, key, key_len, format, args);
    va_end(args);
    return result;
}

static int delete_key(kv_conn_t *conn, const void *key, int key_len)
{
    struct mk_str k;
    if (!get_key(conn, key, key_len, &k))
        return DUDA_KV_IOERR;
    struct duda_kv *store = conn->db;
    return to_result(kv_table_remove(&store->table, k, mk_time_monotonic_ms()));
}

/* ── reading ── */

/*
 * Copies a value as fetch() does, and frees it. Services use what they have stored without a NUL as a string: it has
 * one if there is room.
 */
static void copy_out(struct mk_str value, void *buffer, kv_int_t *len)
{
    kv_int_t room = *len > 0 ? *len : 0, all = (kv_int_t)value.len;
    *len = !buffer || all < room ? all : room;
    if (buffer && *len)
        memcpy(buffer, value.p, (size_t)*len);
    if (buffer && all < room)
        ((char *)buffer)[all] = '\0';
    mem->free((char *)(uintptr_t)value.p);
}

static int find_value(kv_conn_t *conn, const void *key, int key_len, struct mk_str *ret)
{
    struct mk_str k;
    if (!get_key(conn, key, key_len, &k))
        return DUDA_KV_IOERR;
    struct duda_kv *store = conn->db;
    return to_result(kv_table_find(&store->table, KV_AT, k, mk_time_monotonic_ms(), NULL, ret));
}

static int fetch_value(kv_conn_t *conn, const void *key, int key_len, void *buffer, kv_int_t *len)
{
    struct mk_str value;
    int result = len ? find_value(conn, key, key_len, &value) : DUDA_KV_IOERR;
    if (result == DUDA_KV_OK)
        copy_out(value, buffer, len);
    return result;
}

static int fetch_callback(kv_conn_t *conn, const void *key, int key_len,
                          int (*fn)(const void *data, unsigned int len, void *user), void *user)
{
    struct mk_str value;
    int result = fn ? find_value(conn, key, key_len, &value) : DUDA_KV_IOERR;
    if (result != DUDA_KV_OK)
        return result;
    if (fn(value.p, (unsigned)value.len, user) != 0)
        result = DUDA_KV_IOERR;
    mem->free((char *)(uintptr_t)value.p);
    return result;
}

/* ── cursors ── */

static int init_cursor(kv_conn_t *conn, kv_cursor_t **ret)
{
    if (!conn || !conn->db || !ret)
        return DUDA_KV_IOERR;
    *ret = mem->alloc_z(sizeof(**ret));
    if (!*ret)
        return DUDA_KV_NOMEM;
    (*ret)->store = conn->db;
    return DUDA_KV_OK;
}

static void set_key(kv_cursor_t *cursor, struct mk_str key)
{
    mem->free((char *)(uintptr_t)cursor->key.p);
    cursor->key = key;
}

static int release_cursor(kv_conn_t *conn, kv_cursor_t *cursor)
{
    (void)conn;
    if (cursor)
        set_key(cursor, MK_STR_NONE);
    mem->free(cursor);
    return DUDA_KV_OK;
}

static int move_cursor(kv_cursor_t *cursor, enum kv_place place)
{
    struct mk_str key = MK_STR_NONE;
    if (!cursor)
        return DUDA_KV_IOERR;
    bool is_placed = cursor->key.p || place == KV_FIRST || place == KV_LAST;
    int err = is_placed ? kv_table_find(&cursor->store->table, place, cursor->key, mk_time_monotonic_ms(), &key, NULL)
                        : -ENOENT;
    set_key(cursor, key);
    return to_result(err);
}

static int go_first(kv_cursor_t *cursor)
{
    return move_cursor(cursor, KV_FIRST);
}

static int go_last(kv_cursor_t *cursor)
{
    return move_cursor(cursor, KV_LAST);
}

static int go_next(kv_cursor_t *cursor)
{
    return move_cursor(cursor, KV_BEHIND);
}

static int go_before(kv_cursor_t *cursor)
{
    return move_cursor(cursor, KV_BEFORE);
}

static int is_valid(kv_cursor_t *cursor)
{
    return cursor && cursor->key.p;
}

static int get_cursor_key(kv_cursor_t *cursor, void *buffer, int *len)
{
    if (!cursor || !len)
        return DUDA_KV_IOERR;
    if (!cursor->key.p)
        return DUDA_KV_NOTFOUND;
    int all = (int)cursor->key.len, room = *len > 0 ? *len : 0;
    *len = !buffer || all < room ? all : room;
    if (buffer)
        memcpy(buffer, cursor->key.p, (size_t)*len);
    return DUDA_KV_OK;
}

static int get_cursor_data(kv_cursor_t *cursor, void *buffer, kv_int_t *len)
{
    struct mk_str value;
    if (!cursor || !len)
        return DUDA_KV_IOERR;
    if (!cursor->key.p)
        return DUDA_KV_NOTFOUND;
    int err = kv_table_find(&cursor->store->table, KV_AT, cursor->key, mk_time_monotonic_ms(), NULL, &value);
    if (err == 0)
        copy_out(value, buffer, len);
    return to_result(err);
}

const struct duda_api_kv kv_old_calls = {
    .init = init_conn,
    .close = close_store,
    .store = store_value,
    .store_fmt = store_format,
    .append = append_value,
    .append_fmt = append_format,
    .fetch = fetch_value,
    .fetch_callback = fetch_callback,
    .delete = delete_key,
    .cursor_init = init_cursor,
    .cursor_release = release_cursor,
    .cursor_reset = go_first,
    .cursor_valid = is_valid,
    .cursor_first = go_first,
    .cursor_last = go_last,
    .cursor_next = go_next,
    .cursor_prev = go_before,
    .cursor_key = get_cursor_key,
    .cursor_data = get_cursor_data,
};

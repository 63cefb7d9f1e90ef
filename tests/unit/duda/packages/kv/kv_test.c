// SPDX-License-Identifier: Apache-2.0
/* The package kv: order, limits, ends, numbers, cursors while items are removed, threads, and no memory. */
#include <duda/mem.h>
#include <duda/packages/kv/kv.h>

#include "testing.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "duda/packages/kv/table.h"

enum { MANY = 2000 };

static long countdown = -1;

static void *alloc(size_t size)
{
    return countdown >= 0 && countdown-- == 0 ? NULL : malloc(size);
}

static void *alloc_zeroed(size_t size)
{
    void *p = alloc(size);
    return p ? memset(p, 0, size) : NULL;
}

static const struct duda_api_mem heap = {.alloc = alloc, .alloc_z = alloc_zeroed, .realloc = realloc, .free = free};

/* The state of the one service of these tests. */
static void *service;

static void *get_service(const struct duda_package *package)
{
    (void)package;
    return service;
}

static const struct duda_api_package loader = {.service_state = get_service};

static int begin(void **state)
{
    (void)state;
    mem = &heap;
    duda_package_loader = &loader;
    struct duda_package *package = duda_package_main();
    kv = package->api;
    service = package->service_start();
    return service ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    duda_package_main()->service_stop(service);
    return 0;
}

static void assert_get(duda_kv_t *store, const char *key, const char *value)
{
    size_t len;
    char *found = kv->get(store, key, &len);
    if (value)
        assert_string_equal(found, value);
    else
        assert_null(found);
    assert_int_equal(len, value ? strlen(value) : 0);
    free(found);
}

TEST(values, begin, end)
{
    duda_kv_t *store = kv->open(NULL);
    assert_get(store, "a", NULL);
    assert_int_equal(kv->put(store, "a", "1", 1, 0), 0);
    assert_int_equal(kv->put(store, "a", "", 0, 0), 0);
    assert_get(store, "a", "");
    assert_int_equal(kv->put(store, "a", "longer than before", 18, 0), 0);
    assert_get(store, "a", "longer than before");
    assert_int_equal(kv->put_new(store, "a", "2", 1, 0), -EEXIST);
    assert_int_equal(kv->put_new(store, "b", "2", 1, 0), 0);
    assert_int_equal(kv->count(store), 2);
    assert_int_equal(kv->remove(store, "a"), 0);
    assert_int_equal(kv->remove(store, "a"), -ENOENT);
    assert_get(store, "a", NULL);
    assert_get(store, "b", "2");
}

TEST(wrong_arguments, begin, end)
{
    duda_kv_t *store = kv->open(NULL);
    char key[DUDA_KV_KEY_BYTES + 2];
    memset(key, 'k', sizeof(key));
    key[DUDA_KV_KEY_BYTES + 1] = '\0';
    assert_int_equal(kv->put(store, key, "", 0, 0), -EINVAL);
    assert_int_equal(kv->put(store, key + 1, "", 0, 0), 0);
    assert_int_equal(kv->put(store, "", "", 0, 0), -EINVAL);
    assert_int_equal(kv->put(store, NULL, "", 0, 0), -EINVAL);
    assert_int_equal(kv->put(store, "a", NULL, 1, 0), -EINVAL);
    assert_int_equal(kv->put(NULL, "a", "", 0, 0), -EINVAL);
    assert_int_equal(kv->remove(store, ""), -EINVAL);
    assert_int_equal(kv->add(store, "", 1, 0, NULL), -EINVAL);
    assert_int_equal(kv->each(store, "", NULL, NULL), -EINVAL);
    void *own = service;
    service = NULL; /* a thread that is none of a service */
    errno = 0;
    assert_null(kv->open(NULL));
    assert_int_equal(errno, EPERM);
    service = own;
}

TEST(numbers, begin, end)
{
    duda_kv_t *store = kv->open(NULL);
    int64_t n;
    assert_int_equal(kv->add(store, "n", 5, 0, &n), 0);
    assert_int_equal(kv->add(store, "n", -7, 0, &n), 0);
    assert_int_equal(n, -2);
    assert_get(store, "n", "-2");
    assert_int_equal(kv->put(store, "n", "9223372036854775807", 19, 0), 0);
    assert_int_equal(kv->add(store, "n", 1, 0, &n), -ERANGE);
    assert_get(store, "n", "9223372036854775807");
    assert_int_equal(kv->put(store, "n", "-9223372036854775808", 20, 0), 0);
    assert_int_equal(kv->add(store, "n", -1, 0, &n), -ERANGE);
    assert_int_equal(kv->add(store, "n", 1, 0, &n), 0);
    static const char *const wrong[] = {"", "-", "x", "1 ", "--1", "9223372036854775808"};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        kv->put(store, "n", wrong[i], strlen(wrong[i]), 0);
        assert_int_equal(kv->add(store, "n", 1, 0, &n), -EINVAL);
    }
}

/* ── limits ── */

TEST(a_full_store, begin, end)
{
    duda_kv_t *store = kv->open(&(struct duda_kv_conf){.items_max = 2, .bytes_max = 1000});
    static char text[1000];
    assert_int_equal(kv->put(store, "a", "1", 1, 0), 0);
    assert_int_equal(kv->put(store, "b", "1", 1, 0), 0);
    assert_int_equal(kv->put(store, "c", "1", 1, 0), -ENOSPC);
    assert_int_equal(kv->put(store, "b", text, 805, 0), 0);
    assert_int_equal(kv->put(store, "b", text, 806, 0), -ENOSPC); /* with 2 * (96 + 1) + 1 */
    assert_int_equal(kv->put(store, "a", text, 1, 0), 0);
    assert_int_equal(kv->remove(store, "b"), 0);
    assert_int_equal(kv->put(store, "c", "1", 1, 0), 0);
    assert_int_equal(kv->put(store, "c", text, 904, 0), -ENOSPC);
    assert_get(store, "c", "1");
}

TEST(eviction, begin, end)
{
    duda_kv_t *store = kv->open(&(struct duda_kv_conf){.items_max = 3, .bytes_max = 1000, .evicts = true});
    static char text[1000];
    for (const char *key = "abc"; *key; key++)
        assert_int_equal(kv->put(store, (char[]){*key, 0}, "1", 1, 0), 0);
    assert_int_equal(kv->put(store, "a", "2", 1, 0), 0);
    assert_int_equal(kv->put(store, "d", "1", 1, 0), 0);
    assert_get(store, "b", NULL); /* the one whose last write is the longest ago */
    assert_get(store, "a", "2");
    assert_int_equal(kv->put(store, "a", text, 900, 0), 0);
    assert_int_equal(kv->count(store), 1);
    assert_int_equal(kv->put(store, "a", text, 904, 0), -ENOSPC); /* never, so that nothing is removed for it */
    assert_int_equal(kv->count(store), 1);
}

TEST(ends, begin, end)
{
    struct kv_limits limits = {.bytes_max = 1 << 20, .items_max = 2};
    struct kv_table t;
    int64_t n;
    kv_table_init(&t, &limits);
    assert_int_equal(kv_table_write(&t, KV_PUT, MK_STR("a"), MK_STR("1"), 100, 0), 0);
    assert_int_equal(kv_table_write(&t, KV_APPEND, MK_STR("a"), MK_STR("2"), 500, 50), 0);
    assert_int_equal(kv_table_find(&t, KV_AT, MK_STR("a"), 99, NULL, NULL), 0);
    assert_int_equal(kv_table_find(&t, KV_AT, MK_STR("a"), 100, NULL, NULL), -ENOENT);
    assert_int_equal(kv_table_count(&t), 0);
    assert_int_equal(kv_table_add(&t, MK_STR("n"), 1, 200, 100, &n), 0);
    assert_int_equal(kv_table_add(&t, MK_STR("n"), 1, 900, 199, &n), 0); /* keeps its end: a window of a limit */
    assert_int_equal(n, 2);
    assert_int_equal(kv_table_add(&t, MK_STR("n"), 1, 300, 200, &n), 0);
    assert_int_equal(n, 1);
    assert_int_equal(kv_table_write(&t, KV_PUT, MK_STR("b"), MK_STR(""), UINT64_MAX, 200), 0);
    assert_int_equal(kv_table_write(&t, KV_PUT, MK_STR("c"), MK_STR(""), UINT64_MAX, 299), -ENOSPC);
    assert_int_equal(kv_table_write(&t, KV_PUT, MK_STR("c"), MK_STR(""), UINT64_MAX, 300), 0); /* in the place of n */
    assert_int_equal(kv_table_find(&t, KV_FIRST, MK_STR_NONE, 300, NULL, NULL), 0);
    kv_table_release(&t);
}

/* ── order ── */

static int check_order(const char *key, const char *value, size_t len, void *data)
{
    unsigned *n = data;
    char expected[16];
    snprintf(expected, sizeof(expected), "k%05u", *n);
    assert_string_equal(key, expected);
    assert_int_equal(len, strlen(value));
    ++*n;
    return 0;
}

static int remove_each(const char *key, const char *value, size_t len, void *data)
{
    (void)value, (void)len;
    return kv->remove(data, key);
}

static int stop_at_once(const char *key, const char *value, size_t len, void *data)
{
    (void)key, (void)value, (void)len, (void)data;
    return 7;
}

TEST(order, begin, end)
{
    duda_kv_t *store = kv->open(NULL);
    unsigned n = 0;
    for (unsigned i = 0; i < MANY; i++) {
        char key[16];
        snprintf(key, sizeof(key), "k%05u", i * 7 % MANY);
        assert_int_equal(kv->put(store, key, key, strlen(key), 0), 0);
    }
    assert_int_equal(kv->put(store, "a", "", 0, 0), 0);
    assert_int_equal(kv->put(store, "z", "", 0, 0), 0);
    assert_int_equal(kv->count(store), MANY + 2);
    assert_int_equal(kv->each(store, "k", check_order, &n), 0);
    assert_int_equal(n, MANY);
    n = 100;
    assert_int_equal(kv->each(store, "k001", check_order, &n), 0);
    assert_int_equal(n, 200);
    assert_int_equal(kv->each(store, "k", stop_at_once, NULL), 7);
    assert_int_equal(kv->each(store, "none", stop_at_once, NULL), 0);
    assert_int_equal(kv->each(store, "k", remove_each, store), 0);
    assert_int_equal(kv->count(store), 2);
}

/* ── the calls of the original ── */

static int compare_value(const void *data, unsigned len, void *user)
{
    return len == strlen(user) && memcmp(data, user, len) == 0 ? 0 : 1;
}

TEST(old_calls, begin, end)
{
    kv_conn_t conn;
    char text[16] = "", whole[] = "x-1", part[] = "x";
    kv_int_t len = 0;
    assert_int_equal(kv->init(&conn), DUDA_KV_OK);
    assert_int_equal(kv->store(&conn, "a", -1, "12", 2), DUDA_KV_OK);
    assert_int_equal(kv->append(&conn, "a", 1, "3", -1), DUDA_KV_OK);
    assert_int_equal(kv->append_fmt(&conn, "a", -1, "%d", 45), DUDA_KV_OK);
    assert_int_equal(kv->store_fmt(&conn, "b", -1, "%s-%d", "x", 1), DUDA_KV_OK);
    assert_int_equal(kv->fetch(&conn, "a", -1, NULL, &len), DUDA_KV_OK);
    assert_int_equal(len, 5);
    len = 3;
    assert_int_equal(kv->fetch(&conn, "a", -1, text, &len), DUDA_KV_OK);
    assert_int_equal(len, 3);
    assert_string_equal(text, "123");
    assert_int_equal(kv->fetch(&conn, "none", -1, NULL, &len), DUDA_KV_NOTFOUND);
    assert_int_equal(kv->fetch_callback(&conn, "b", -1, compare_value, whole), DUDA_KV_OK);
    assert_int_equal(kv->fetch_callback(&conn, "b", -1, compare_value, part), DUDA_KV_IOERR);
    assert_int_equal(kv->delete (&conn, "a", -1), DUDA_KV_OK);
    assert_int_equal(kv->delete (&conn, "a", -1), DUDA_KV_NOTFOUND);
    assert_int_equal(kv->store(&conn, "", -1, "", 0), DUDA_KV_IOERR);
    assert_int_equal(kv->store(NULL, "a", -1, "", 0), DUDA_KV_IOERR);
    assert_int_equal(kv->close(&conn), DUDA_KV_OK);
    assert_int_equal(kv->fetch(&conn, "b", -1, NULL, &len), DUDA_KV_IOERR);
    assert_int_equal(kv->close(&conn), DUDA_KV_IOERR);
}

TEST(cursors, begin, end)
{
    kv_conn_t conn;
    kv_cursor_t *cursor;
    char seen[16] = "", key[8];
    int n;
    kv->init(&conn);
    kv->cursor_init(&conn, &cursor);
    assert_int_equal(kv->cursor_first(cursor), DUDA_KV_NOTFOUND);
    assert_int_equal(kv->cursor_valid(cursor), 0);
    assert_int_equal(kv->cursor_next(cursor), DUDA_KV_NOTFOUND);
    for (const char *c = "cabd"; *c; c++)
        kv->store_fmt(&conn, c, 1, "v%c", *c);
    KV_CURSOR_FOREACH(cursor)
    {
        kv_int_t len = sizeof(key);
        n = sizeof(key);
        assert_int_equal(kv->cursor_data(cursor, key, &len), DUDA_KV_OK);
        assert_int_equal(len, 2);
        assert_int_equal(kv->cursor_key(cursor, seen + strlen(seen), &n), DUDA_KV_OK);
        assert_int_equal(n, 1);
        if (strcmp(seen, "ab") == 0)
            kv->delete (&conn, "b", 1); /* that it is at */
    }
    assert_string_equal(seen, "abcd");
    assert_int_equal(kv->cursor_last(cursor), DUDA_KV_OK);
    kv->delete (&conn, "d", 1);
    kv_int_t len = 0;
    assert_int_equal(kv->cursor_data(cursor, NULL, &len), DUDA_KV_NOTFOUND);
    assert_int_equal(kv->cursor_prev(cursor), DUDA_KV_OK);
    n = 1;
    kv->cursor_key(cursor, key, &n);
    assert_int_equal(key[0], 'c');
    assert_int_equal(kv->cursor_prev(cursor), DUDA_KV_OK);
    assert_int_equal(kv->cursor_prev(cursor), DUDA_KV_NOTFOUND);
    assert_int_equal(kv->cursor_reset(cursor), DUDA_KV_OK);
    assert_int_equal(kv->cursor_release(&conn, cursor), DUDA_KV_OK);
    kv->close(&conn);
}

/* ── threads ── */

enum { THREADS = 4, ROUNDS = 2000 };

static void *count_often(void *arg)
{
    duda_kv_t *store = arg;
    for (unsigned i = 0; i < ROUNDS; i++) {
        char key[16];
        snprintf(key, sizeof(key), "k%u", i % 50);
        kv->add(store, "sum", 1, 0, NULL);
        kv->put(store, key, "x", 1, 0);
        kv->remove(store, key);
        free(kv->get(store, "k1", NULL));
    }
    return NULL;
}

TEST(threads, begin, end)
{
    duda_kv_t *store = kv->open(NULL);
    pthread_t ids[THREADS];
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&ids[i], NULL, count_often, store), 0);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(ids[i], NULL);
    assert_get(store, "sum", "8000");
}

/* ── without memory ── */

TEST(without_memory, begin, end)
{
    duda_kv_t *store = kv->open(NULL);
    assert_int_equal(kv->put(store, "old", "1", 1, 0), 0);
    for (long n = 0; n < 3; n++) {
        countdown = n;
        assert_int_equal(kv->put(store, "new", "1", 1, 0), -ENOMEM);
        countdown = -1;
        assert_int_equal(kv->count(store), 1);
    }
    countdown = 0;
    assert_int_equal(kv->put(store, "old", "22", 2, 0), -ENOMEM);
    countdown = 0;
    assert_null(kv->get(store, "old", NULL));
    countdown = -1;
    assert_get(store, "old", "1");
    countdown = 1;
    unsigned seen = 0;
    assert_int_equal(kv->each(store, "", check_order, &seen), -ENOMEM);
    countdown = 0;
    assert_null(kv->open(NULL));
    countdown = -1;
}

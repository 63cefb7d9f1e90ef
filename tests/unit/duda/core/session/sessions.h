// SPDX-License-Identifier: Apache-2.0
/*
 * For tests of the stores of sessions. A test says before it includes this what it tests: SESSIONS_COMMIT and
 * SESSIONS_LOAD, session_file_commit() or session_memory_commit() and so on.
 */
#ifndef MK_UNIT_DUDA_SESSIONS_H
#define MK_UNIT_DUDA_SESSIONS_H

#include "testing.h"

#include <pthread.h>
#include <stdio.h>

#include "duda/core/common/heap.h"
#include "duda/core/session/session_file.h"
#include "duda/core/session/session_store.h"

enum { IDLE = 100, LIFE = 1000, WRITERS = 4 };

static const struct session_limits limits = {.idle_s = IDLE,
                                             .bytes_max = 1 << 20,
                                             .sessions_max = 3,
                                             .session_bytes = 1000};

static struct mk_list stores;

/* Opens a store as the only one of `stores`. `folder` is a path; NULL: in memory. */
static inline struct session_store *open_store_of(const char *folder, const struct session_limits *l)
{
    mk_list_init(&stores);
    unsigned version;
    struct session_store *store = session_store_get(&stores, "localhost", "web", folder, &version);
    assert_non_null(store);
    session_store_adopt(store, version, l);
    return store;
}

static inline struct session_key make_key(unsigned n)
{
    struct session_key key;
    mk_sha1(key.bytes, &n, sizeof(n));
    return key;
}

static inline struct session_change change(const char *key, const char *value)
{
    return (struct session_change){.key = mk_str_c(key), .value = mk_str_c(value)};
}

static inline int create(struct session_store *store, unsigned n, int64_t now)
{
    struct session_change c = change("n", "1");
    struct session_commit commit = {.has_to = true, .to = make_key(n), .changes = &c, .ends = now + LIFE};
    return SESSIONS_COMMIT(store, &commit, now);
}

static inline int update(struct session_store *store, unsigned n, const char *key, const char *value, int64_t now)
{
    struct session_change c = change(key, value);
    struct session_commit commit = {
        .has_from = true, .from = make_key(n), .has_to = true, .to = make_key(n), .changes = &c};
    return SESSIONS_COMMIT(store, &commit, now);
}

static inline int load(struct session_store *store, unsigned n, int64_t now)
{
    struct session_key key = make_key(n);
    struct mk_str values;
    int err = SESSIONS_LOAD(store, &key, now, &values);
    heap_free((char *)(uintptr_t)values.p, values.len);
    return err;
}

static inline void assert_value(struct session_store *store, unsigned n, const char *key, const char *value,
                                int64_t now)
{
    struct session_key k = make_key(n);
    struct mk_str values, found = MK_STR_NONE;
    assert_int_equal(SESSIONS_LOAD(store, &k, now, &values), 0);
    assert_int_equal(session_values_find(values, mk_str_c(key), &found), value != NULL);
    if (value)
        assert_str_equal(found, value);
    heap_free((char *)(uintptr_t)values.p, values.len);
}

/* ── threads ── */

struct writer {
    struct session_store *store;
    unsigned n, rounds;
    int64_t now;
};

static inline void *write_often(void *arg)
{
    const struct writer *w = arg;
    char key[8], value[16];
    snprintf(key, sizeof(key), "k%u", w->n);
    for (unsigned i = 1; i <= w->rounds; i++) {
        snprintf(value, sizeof(value), "%u", i);
        assert_int_equal(update(w->store, 1, key, value, w->now), 0);
        assert_int_equal(update(w->store, 1, "shared", key, w->now), 0);
        load(w->store, 1, w->now);
    }
    return NULL;
}

/* Creates session 1, changes it from several threads by way of both stores, and asserts that no change is lost. */
static inline void write_from_threads(struct session_store *first, struct session_store *second, unsigned rounds,
                                      int64_t now)
{
    struct writer writers[WRITERS];
    pthread_t ids[WRITERS];
    assert_int_equal(create(first, 1, now), 0);
    for (unsigned i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){i % 2 ? first : second, i, rounds, now};
        assert_int_equal(pthread_create(&ids[i], NULL, write_often, &writers[i]), 0);
    }
    for (unsigned i = 0; i < WRITERS; i++)
        pthread_join(ids[i], NULL);
    for (unsigned i = 0; i < WRITERS; i++) {
        char key[8], value[16];
        snprintf(key, sizeof(key), "k%u", i);
        snprintf(value, sizeof(value), "%u", rounds);
        assert_value(first, 1, key, value, now);
    }
}

#endif

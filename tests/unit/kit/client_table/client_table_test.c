// SPDX-License-Identifier: Apache-2.0
/* Clients and their records: exact over threads, bounded, and anew after an eviction. */
#include "testing.h"

#include <pthread.h>
#include <stdlib.h>

#include <monkey/kit/client_table.h>

struct record {
    uint64_t count;
    uint32_t other;
};

static struct mk_address make_v4(uint32_t n)
{
    struct mk_address a;
    uint8_t bytes[4] = {(uint8_t)(n >> 24), (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n};
    mk_address_set(&a, AF_INET, bytes, 0);
    return a;
}

static struct mk_address read_address(const char *text)
{
    struct mk_address a;
    assert_int_equal(mk_address_parse(mk_str_c(text), &a), 0);
    return a;
}

/* Adds one to the record of a client, which is kept until `idle_at`, and returns the count. */
static uint64_t add_one(struct mk_client_table *t, struct mk_address client, uint64_t now, uint64_t idle_at)
{
    struct record *r = mk_client_table_lock(t, &client, now);
    uint64_t count = ++r->count;
    r->other++;
    mk_client_table_unlock(t, r, idle_at);
    return count;
}

static uint64_t read_count(struct mk_client_table *t, struct mk_address client, uint64_t now)
{
    struct record *r = mk_client_table_find(t, &client, now);
    uint64_t count = r ? r->count : 0;
    if (r)
        mk_client_table_unlock(t, r, MK_CLIENT_IN_USE);
    return count;
}

TEST(networks_are_clients)
{
    struct mk_client_table *t = mk_client_table_new(100, sizeof(struct record), 0, 0);
    assert_non_null(t);
    assert_int_equal(add_one(t, read_address("192.0.2.1"), 1, 100), 1);
    assert_int_equal(add_one(t, read_address("192.0.2.2"), 1, 100), 1);
    assert_int_equal(add_one(t, read_address("::ffff:192.0.2.1"), 1, 100), 2);
    assert_int_equal(add_one(t, read_address("2001:db8:1:2::1"), 1, 100), 1);
    assert_int_equal(add_one(t, read_address("2001:db8:1:2:ffff::9"), 1, 100), 2);
    assert_int_equal(add_one(t, read_address("2001:db8:1:3::1"), 1, 100), 1);
    struct mk_address local = {.family = AF_UNIX}, unknown = {0};
    assert_int_equal(add_one(t, local, 1, 100), 1);
    assert_int_equal(add_one(t, unknown, 1, 100), 1);
    assert_int_equal(add_one(t, local, 1, 100), 2);
    assert_int_equal(mk_client_table_counts(t).entries, 6);
    mk_client_table_free(t);
    mk_client_table_free(NULL);
}

TEST(lengths_of_networks)
{
    struct mk_client_table *t = mk_client_table_new(100, sizeof(struct record), 20, 49);
    assert_int_equal(add_one(t, read_address("10.1.16.1"), 1, 100), 1);
    assert_int_equal(add_one(t, read_address("10.1.31.255"), 1, 100), 2);
    assert_int_equal(add_one(t, read_address("10.1.32.0"), 1, 100), 1);
    assert_int_equal(add_one(t, read_address("2001:db8:1:7fff::"), 1, 100), 1);
    assert_int_equal(add_one(t, read_address("2001:db8:1::"), 1, 100), 2);
    assert_int_equal(add_one(t, read_address("2001:db8:1:8000::"), 1, 100), 1);
    mk_client_table_free(t);
}

TEST(an_idle_record_is_as_new)
{
    struct mk_client_table *t = mk_client_table_new(10, sizeof(struct record), 0, 0);
    assert_int_equal(add_one(t, make_v4(1), 5, 10), 1);
    assert_int_equal(add_one(t, make_v4(1), 9, 20), 2);
    assert_int_equal(add_one(t, make_v4(1), 20, MK_CLIENT_IN_USE), 1);
    assert_int_equal(add_one(t, make_v4(1), 1000000, MK_CLIENT_IN_USE), 2);
    assert_int_equal(read_count(t, make_v4(2), 1), 0);
    assert_int_equal(mk_client_table_counts(t).entries, 1);
    mk_client_table_free(t);
}

/* A flood of addresses replaces the least recently used ones; those that are used meanwhile stay. */
TEST(flood)
{
    enum { CLIENTS = 128, FLOOD = 100000 };
    struct mk_client_table *t = mk_client_table_new(CLIENTS, sizeof(struct record), 0, 0);
    for (uint32_t i = 0; i < FLOOD; i++) {
        assert_int_equal(add_one(t, make_v4(1000 + i), i, UINT64_MAX - 1), 1);
        assert_int_equal(add_one(t, make_v4(7), i, UINT64_MAX - 1), i + 1);
    }
    struct mk_client_counts counts = mk_client_table_counts(t);
    assert_int_equal(counts.entries, CLIENTS);
    assert_int_equal(counts.evicted, FLOOD + 1 - CLIENTS);
    mk_client_table_free(t);
}

TEST(used_up_entries_are_no_loss)
{
    struct mk_client_table *t = mk_client_table_new(16, sizeof(struct record), 0, 0);
    for (uint32_t i = 0; i < 1000; i++)
        add_one(t, make_v4(i), i, i + 1);
    assert_int_equal(mk_client_table_counts(t).evicted, 0);
    mk_client_table_free(t);
}

/* Records in use are replaced last; then their references find nothing, whatever the entry is used for. */
TEST(references)
{
    struct mk_client_table *t = mk_client_table_new(4, sizeof(struct record), 0, 0);
    struct mk_address client = make_v4(1);
    struct record *r = mk_client_table_lock(t, &client, 1);
    struct mk_client_ref ref = mk_client_table_ref(t, r), none = {0};
    r->count = 5;
    mk_client_table_unlock(t, r, MK_CLIENT_IN_USE);
    assert_null(mk_client_table_lock_ref(t, none));
    for (uint32_t i = 2; i < 50; i++)
        add_one(t, make_v4(i), i, 1000);
    r = mk_client_table_lock_ref(t, ref);
    assert_non_null(r);
    assert_int_equal(r->count, 5);
    mk_client_table_unlock(t, r, MK_CLIENT_IN_USE);
    for (uint32_t i = 50; i < 60; i++)
        add_one(t, make_v4(i), i, MK_CLIENT_IN_USE);
    assert_null(mk_client_table_lock_ref(t, ref));
    assert_int_equal(add_one(t, client, 60, 1000), 1);
    assert_null(mk_client_table_lock_ref(t, ref));
    mk_client_table_free(t);
}

/* ── threads ── */

enum { THREADS = 4, ROUNDS = 20000, SHARED = 300 };

static void *count_clients(void *ctx)
{
    struct mk_client_table *t = ctx;
    for (uint32_t i = 0; i < ROUNDS; i++) {
        add_one(t, make_v4(i % SHARED), 1, MK_CLIENT_IN_USE);
        struct mk_address one = make_v4(0);
        struct record *r = mk_client_table_lock(t, &one, 1);
        struct mk_client_ref ref = mk_client_table_ref(t, r);
        mk_client_table_unlock(t, r, MK_CLIENT_IN_USE);
        r = mk_client_table_lock_ref(t, ref);
        assert_non_null(r);
        mk_client_table_unlock(t, r, MK_CLIENT_IN_USE);
    }
    return NULL;
}

TEST(threads_count_exactly)
{
    struct mk_client_table *t = mk_client_table_new(10000, sizeof(struct record), 0, 0);
    pthread_t threads[THREADS];
    uint64_t sum = 0;
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count_clients, t), 0);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (uint32_t i = 0; i < SHARED; i++)
        sum += read_count(t, make_v4(i), 1);
    assert_int_equal(sum, (uint64_t)THREADS * ROUNDS);
    assert_int_equal(mk_client_table_counts(t).entries, SHARED);
    assert_int_equal(mk_client_table_counts(t).evicted, 0);
    mk_client_table_free(t);
}

/* A reference finds the record of its client, or none once another thread has taken the entry for its own. */
static void *flood_table(void *ctx)
{
    struct mk_client_table *t = ctx;
    for (uint32_t i = 0; i < ROUNDS; i++) {
        uint32_t number = (uint32_t)rand();
        struct mk_address client = make_v4(number);
        struct record *r = mk_client_table_lock(t, &client, i);
        struct mk_client_ref ref = mk_client_table_ref(t, r);
        r->other = number;
        mk_client_table_unlock(t, r, i + 100);
        if (i % 64 == 0)
            assert_in_range(mk_client_table_counts(t).entries, 1, 1100);
        r = mk_client_table_lock_ref(t, ref);
        if (!r)
            continue;
        assert_int_equal(r->other, number);
        mk_client_table_unlock(t, r, i + 100);
    }
    return NULL;
}

TEST(threads_flood)
{
    struct mk_client_table *t = mk_client_table_new(1000, sizeof(struct record), 0, 0);
    pthread_t threads[THREADS];
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, flood_table, t), 0);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_in_range(mk_client_table_counts(t).entries, 900, 1100);
    mk_client_table_free(t);
}

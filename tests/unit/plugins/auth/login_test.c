// SPDX-License-Identifier: Apache-2.0
/*
 * What logins share: the cache and the counts of failures.
 */
#include "testing.h"

#include "plugins/auth/rules.h"

#include <stdio.h>

/* ── cache ── */

static struct cache_key make_key(const struct cache *c, const char *stored, const char *user, const char *password)
{
    struct cache_key key;
    assert_true(cache_make_key(c, mk_str_c(stored), mk_str_c(user), mk_str_c(password), &key));
    return key;
}

TEST(cache)
{
    struct cache *c = cache_new(), *other = cache_new();
    struct cache_key key = make_key(c, "hash", "ada", "secret");
    assert_false(cache_has(c, &key, 1000));
    cache_add(c, &key, 1000, 500);
    assert_true(cache_has(c, &key, 1000) && cache_has(c, &key, 1499));
    assert_false(cache_has(c, &key, 1500));
    cache_add(c, &key, 2000, 500);
    static const char *const others[][3] = {{"hash", "ada", "Secret"},
                                            {"hash", "ad", "asecret"},
                                            {"Hash", "ada", "secret"},
                                            {"hasha", "da", "secret"}};
    for (size_t i = 0; i < COUNT(others); i++) {
        struct cache_key wrong = make_key(c, others[i][0], others[i][1], others[i][2]);
        assert_false(cache_has(c, &wrong, 2000));
    }
    struct cache_key elsewhere = make_key(other, "hash", "ada", "secret");
    assert_false(cache_is_same(&key, &elsewhere)); /* each process has its own key */
    cache_free(other);
    cache_free(c);
    cache_free(NULL);
}

/* However many are added, the newest is there, and memory does not grow. */
TEST(full_cache)
{
    struct cache *c = cache_new();
    char user[32];
    for (unsigned i = 0; i < 4 * CACHE_ENTRIES; i++) {
        snprintf(user, sizeof(user), "user%u", i);
        struct cache_key key = make_key(c, "hash", user, "x");
        cache_add(c, &key, i, 100000);
        assert_true(cache_has(c, &key, i));
    }
    cache_free(c);
}

TEST(picks)
{
    struct cache *c = cache_new();
    unsigned seen = 0;
    char user[32];
    for (unsigned i = 0; i < 200; i++) {
        snprintf(user, sizeof(user), "user%u", i);
        uint32_t n = cache_pick(c, mk_str_c(user), 5);
        assert_true(n < 5 && n == cache_pick(c, mk_str_c(user), 5));
        seen |= 1U << n;
    }
    assert_int_equal(seen, 31);
    cache_free(c);
}

/* ── failures ── */

static struct mk_address address(const char *text)
{
    struct mk_address a;
    assert_int_equal(mk_address_parse(mk_str_c(text), &a), 0);
    return a;
}

static const struct failures_limits limits = {.max = 3, .time_ms = 1000, .running = 2};

/* Returns whether it was the last failure that is allowed. */
static bool fail_login(struct mk_client_table *t, const struct mk_address *client, uint64_t now_ms)
{
    assert_true(failures_begin(t, client, now_ms, &limits));
    return failures_end(t, client, now_ms, &limits, true);
}

TEST(failures)
{
    struct mk_client_table *t = failures_new();
    struct mk_address a = address("192.0.2.1"), b = address("192.0.2.2"), v6 = address("2001:db8::1"),
                      same = address("2001:db8::ffff:1");
    assert_int_equal(failures_wait_ms(t, &a, 1000, &limits), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(failures_wait_ms(t, &a, 1000 + 100 * i, &limits), 0);
        assert_true(fail_login(t, &a, 1000 + 100 * i) == (i == 2));
        fail_login(t, &v6, 1000);
    }
    assert_int_equal(failures_wait_ms(t, &a, 1300, &limits), 700); /* the window began with the first one */
    assert_int_equal(failures_wait_ms(t, &same, 1300, &limits), 700);
    assert_int_equal(failures_wait_ms(t, &b, 1300, &limits), 0);
    assert_int_equal(failures_wait_ms(t, &a, 2000, &limits), 0);
    fail_login(t, &a, 2000);
    assert_int_equal(failures_wait_ms(t, &a, 2001, &limits), 0);
    mk_client_table_free(t);
}

TEST(attempts_at_once)
{
    struct mk_client_table *t = failures_new();
    struct mk_address a = address("192.0.2.1"), local = {.family = AF_UNIX};
    assert_true(failures_begin(t, &a, 1, &limits) && failures_begin(t, &a, 1, &limits));
    assert_false(failures_begin(t, &a, 1, &limits));
    failures_end(t, &a, 5000, &limits, false); /* outlives any window */
    assert_true(failures_begin(t, &a, 5000, &limits));
    assert_false(failures_begin(t, &a, 9000, &limits));
    for (int i = 0; i < 10; i++)
        fail_login(t, &local, 1);
    assert_int_equal(failures_wait_ms(t, &local, 1, &limits), 0);
    mk_client_table_free(t);
}

/* Failures of passwords and of tokens are one count. */
TEST(failures_without_attempts)
{
    struct mk_client_table *t = failures_new();
    struct mk_address a = address("192.0.2.1"), local = {.family = AF_UNIX};
    assert_true(failures_begin(t, &a, 1000, &limits));
    assert_false(failures_add(t, &a, 1000, &limits));
    assert_true(failures_begin(t, &a, 1000, &limits));
    assert_false(failures_begin(t, &a, 1000, &limits)); /* nothing has ended */
    assert_false(failures_end(t, &a, 1100, &limits, true));
    assert_true(failures_add(t, &a, 1200, &limits));
    assert_int_equal(failures_wait_ms(t, &a, 1300, &limits), 700);
    assert_false(failures_add(t, &a, 1400, &limits)); /* one more than the last one */
    failures_end(t, &a, 1400, &limits, false);
    assert_int_equal(failures_wait_ms(t, &a, 2000, &limits), 0);
    assert_false(failures_add(t, &a, 2000, &limits)); /* a window begins */
    assert_int_equal(failures_wait_ms(t, &a, 2001, &limits), 0);
    for (int i = 0; i < 10; i++)
        assert_false(failures_add(t, &local, 1, &limits));
    mk_client_table_free(t);
}

TEST(no_limit)
{
    static const struct failures_limits none = {.max = 0, .time_ms = 1000, .running = 1};
    struct mk_client_table *t = failures_new();
    struct mk_address a = address("192.0.2.1");
    for (int i = 0; i < 100; i++) {
        assert_true(failures_begin(t, &a, 1, &none));
        assert_false(failures_end(t, &a, 1, &none, true));
    }
    assert_int_equal(failures_wait_ms(t, &a, 1, &none), 0);
    mk_client_table_free(t);
}

/* What is being checked may fail, too: no more than may fail are begun. */
TEST(attempts_that_may_fail)
{
    static const struct failures_limits three = {.max = 3, .time_ms = 1000, .running = 100};
    struct mk_client_table *t = failures_new();
    struct mk_address a = address("192.0.2.1");
    assert_true(failures_begin(t, &a, 1, &three));
    assert_false(failures_end(t, &a, 1, &three, true));
    assert_true(failures_begin(t, &a, 1, &three));
    assert_true(failures_begin(t, &a, 1, &three));
    assert_false(failures_begin(t, &a, 1, &three));
    assert_false(failures_end(t, &a, 1, &three, false));
    assert_true(failures_begin(t, &a, 1, &three));
    mk_client_table_free(t);
}

/* A table that is too small says so, once a minute. */
TEST(evictions)
{
    enum { START_MS = 1000000, CLIENTS = 2 * FAILURES_CLIENTS };
    static const struct failures_limits hour = {.max = 3, .time_ms = 3600000, .running = 2};
    struct mk_client_table *t = failures_new();
    struct failures_evictions e = {0};
    struct mk_address a = address("192.0.2.1");
    char text[32];
    failures_add(t, &a, START_MS, &hour);
    assert_int_equal(failures_take_evictions(&e, t, START_MS), 0);
    for (unsigned i = 0; i < CLIENTS; i++) {
        snprintf(text, sizeof(text), "10.%u.%u.%u", i >> 16, i >> 8 & 255, i & 255);
        a = address(text);
        failures_add(t, &a, START_MS, &hour);
    }
    assert_int_equal(failures_take_evictions(&e, t, START_MS + FAILURES_EVICTIONS_MS - 1), 0);
    uint64_t evicted = failures_take_evictions(&e, t, START_MS + FAILURES_EVICTIONS_MS);
    assert_true(evicted >= CLIENTS / 4 && evicted == mk_client_table_counts(t).evicted);
    assert_int_equal(failures_take_evictions(&e, t, START_MS + 2 * FAILURES_EVICTIONS_MS), 0);
    mk_client_table_free(t);
}

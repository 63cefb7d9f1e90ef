// SPDX-License-Identifier: Apache-2.0
/* Sessions in memory: expiry to the second, bounds, concurrent writes, and stores over new versions of services. */
#define SESSIONS_COMMIT session_memory_commit
#define SESSIONS_LOAD session_memory_load

#include "sessions.h"

#include <errno.h>

static struct session_store *open_store(const struct session_limits *l)
{
    return open_store_of(NULL, l);
}

TEST(expiry)
{
    struct session_store *store = open_store(&limits);
    assert_int_equal(create(store, 1, 0), 0);
    for (int64_t now = 0; now <= 990; now += 99)
        assert_int_equal(load(store, 1, now), 0); /* each use counts */
    assert_int_equal(load(store, 1, 999), 0);
    assert_int_equal(load(store, 1, 1000), -ENOENT); /* the end of its life */
    assert_int_equal(create(store, 2, 1000), 0);
    assert_int_equal(load(store, 2, 1099), 0);
    assert_int_equal(load(store, 2, 1199), -ENOENT); /* not used for 100 s */
    assert_int_equal(store->table.n, 0);
    assert_int_equal(create(store, 3, 2000), 0);
    assert_int_equal(update(store, 3, "a", "b", 2100), -ESTALE);
    assert_int_equal(load(store, 3, 2000), -ENOENT); /* a write does not make it again */
    session_store_drop(store);
}

TEST(expired_ones_make_room)
{
    struct session_store *store = open_store(&limits);
    assert_int_equal(create(store, 1, 0), 0);
    assert_int_equal(create(store, 2, 60), 0);
    assert_int_equal(create(store, 3, 150), 0);
    assert_int_equal(store->table.n, 2); /* 1 has expired at 100 */
    session_store_drop(store);
}

TEST(the_bound)
{
    struct session_store *store = open_store(&limits);
    for (unsigned n = 1; n <= 3; n++)
        assert_int_equal(create(store, n, n), 0);
    assert_int_equal(load(store, 1, 4), 0);
    assert_int_equal(create(store, 4, 5), 0);
    assert_int_equal(load(store, 2, 6), -ENOENT); /* the longest unused */
    for (unsigned n = 1; n <= 4; n++)
        assert_int_equal(load(store, n, 6), n == 2 ? -ENOENT : 0);
    assert_int_equal(store->table.n, 3);
    session_store_drop(store);
}

TEST(the_bound_of_bytes)
{
    struct session_limits l = limits;
    l.bytes_max = 2 * (sizeof(struct session_record) + 500);
    struct session_store *store = open_store(&l);
    static char text[401];
    memset(text, 'x', sizeof(text) - 1);
    for (unsigned n = 1; n <= 3; n++) {
        assert_int_equal(create(store, n, n), 0);
        assert_int_equal(update(store, n, "text", text, n), 0);
        assert_true(store->bytes <= l.bytes_max);
    }
    assert_int_equal(load(store, 1, 4), -ENOENT);
    assert_int_equal(load(store, 2, 4), 0);
    assert_int_equal(load(store, 3, 4), 0);
    session_store_drop(store);
}

TEST(the_bound_of_one)
{
    struct session_store *store = open_store(&limits);
    static char text[1001];
    memset(text, 'x', sizeof(text) - 1);
    assert_int_equal(create(store, 1, 0), 0);
    assert_int_equal(update(store, 1, "text", text, 0), -ENOSPC);
    assert_value(store, 1, "text", NULL, 0);
    assert_value(store, 1, "n", "1", 0);
    session_store_drop(store);
}

TEST(renewal)
{
    struct session_store *store = open_store(&limits);
    struct session_change c = change("user", "ada");
    struct session_commit renew = {
        .has_from = true, .from = make_key(1), .has_to = true, .to = make_key(2), .changes = &c, .ends = 5000};
    assert_int_equal(create(store, 1, 0), 0);
    assert_int_equal(session_memory_commit(store, &renew, 1), 0);
    assert_int_equal(load(store, 1, 1), -ENOENT);
    assert_value(store, 2, "n", "1", 1);
    assert_value(store, 2, "user", "ada", 1);
    assert_int_equal(update(store, 1, "late", "1", 1), -ESTALE);
    assert_int_equal(session_memory_commit(store, &renew, 1), -ESTALE); /* a second login at the same time */
    assert_int_equal(store->table.n, 1);
    session_store_drop(store);
}

TEST(destruction)
{
    struct session_store *store = open_store(&limits);
    struct session_change c = change("new", "1");
    struct session_commit destroy = {.has_from = true, .from = make_key(1), .drops = true};
    struct session_commit anew = {.has_from = true,
                                  .from = make_key(1),
                                  .drops = true,
                                  .has_to = true,
                                  .to = make_key(2),
                                  .changes = &c,
                                  .ends = 100};
    assert_int_equal(create(store, 1, 0), 0);
    assert_int_equal(session_memory_commit(store, &destroy, 0), 0);
    assert_int_equal(session_memory_commit(store, &destroy, 0), 0); /* it is gone already */
    assert_int_equal(update(store, 1, "a", "b", 0), -ESTALE);
    assert_int_equal(create(store, 1, 0), 0);
    assert_int_equal(session_memory_commit(store, &anew, 0), 0);
    assert_int_equal(load(store, 1, 0), -ENOENT);
    assert_value(store, 2, "new", "1", 0);
    assert_value(store, 2, "n", NULL, 0);
    session_store_drop(store);
}

TEST(many)
{
    struct session_limits l = limits;
    enum { MANY = 1000 };
    l.sessions_max = MANY;
    struct session_store *store = open_store(&l);
    for (unsigned n = 0; n < 2 * MANY; n++)
        assert_int_equal(create(store, n, 0), 0);
    for (unsigned n = 0; n < 2 * MANY; n++)
        assert_int_equal(load(store, n, 0), n < MANY ? -ENOENT : 0);
    assert_true(store->table.n_chains >= MANY / 2);
    session_store_drop(store);
}

TEST(concurrent_writes)
{
    struct session_store *store = open_store(&limits);
    write_from_threads(store, store, 500, 0);
    session_store_drop(store);
}

/* ── the stores of a process ── */

/* A version of a service that never serves changes nothing. */
TEST(limits_are_of_the_newest_that_serves)
{
    struct session_store *store = open_store(&limits);
    struct session_limits fewer = limits, least = limits;
    unsigned refused, used;
    fewer.sessions_max = 2;
    least.sessions_max = 1;
    for (unsigned i = 1; i <= 3; i++)
        assert_int_equal(create(store, i, 0), 0);
    assert_ptr_equal(session_store_get(&stores, "localhost", "web", NULL, &refused), store);
    session_store_drop(store);
    assert_int_equal(create(store, 4, 0), 0);
    assert_int_equal(store->table.n, 3);
    assert_ptr_equal(session_store_get(&stores, "localhost", "web", NULL, &used), store);
    session_store_adopt(store, used, &fewer);
    session_store_adopt(store, refused, &least);
    assert_int_equal(session_store_limits(store).sessions_max, 2);
    assert_int_equal(create(store, 5, 0), 0);
    assert_int_equal(store->table.n, 2);
    session_store_drop(store);
    session_store_drop(store);
}

TEST(stores_are_of_a_host_and_a_service)
{
    struct session_store *store = open_store(&limits);
    unsigned version;
    assert_int_equal(create(store, 1, 0), 0);
    struct session_store *again = session_store_get(&stores, "localhost", "web", NULL, &version);
    struct session_store *host = session_store_get(&stores, "other", "web", NULL, &version);
    struct session_store *folder = session_store_get(&stores, "localhost", "web", "/x", &version);
    assert_ptr_equal(again, store);
    assert_ptr_not_equal(host, store);
    assert_ptr_not_equal(folder, store);
    assert_memory_not_equal(&host->owner, &store->owner, sizeof(store->owner));
    session_store_drop(host);
    session_store_drop(folder);
    session_store_drop(store); /* the old version of the service ends */
    assert_int_equal(load(again, 1, 0), 0);
    session_store_ref(again); /* a job */
    session_store_drop(again);
    assert_true(mk_list_empty(&stores));
    assert_int_equal(load(again, 1, 0), 0);
    session_store_unref(again);
}

/* ── without memory ── */

static int use_store(void *ctx)
{
    struct mk_str values = MK_STR_NONE;
    struct session_key key = make_key(1);
    (void)ctx;
    mk_list_init(&stores);
    unsigned version;
    struct session_store *store = session_store_get(&stores, "h", "s", NULL, &version);
    if (!store)
        return -ENOMEM;
    session_store_adopt(store, version, &limits);
    int err = create(store, 1, 0);
    if (err == 0)
        err = update(store, 1, "a", "b", 0);
    if (err == 0)
        err = session_memory_load(store, &key, 0, &values);
    heap_free((char *)(uintptr_t)values.p, values.len);
    session_store_drop(store);
    return err;
}

TEST(without_memory)
{
    assert_true(mk_test_failing_allocs(use_store, NULL) >= 7);
}

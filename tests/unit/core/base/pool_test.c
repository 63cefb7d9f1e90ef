// SPDX-License-Identifier: Apache-2.0
/* Pools: objects come, go and come again; the account knows. */
#include "testing.h"

#include <errno.h>

#include "base/pool.h"

TEST(recycles)
{
    struct mk_account account = {0};
    struct mk__pool pool;
    char *objects[20];
    mk__pool_init(&pool, &account, 100, 8);
    for (int i = 0; i < 20; i++) {
        objects[i] = mk__pool_get(&pool);
        assert_non_null(objects[i]);
        assert_int_equal((uintptr_t)objects[i] % 16, 0);
        memset(objects[i], i, 100);
    }
    assert_int_equal(pool.used, 20);
    for (int i = 0; i < 20; i++)
        for (int j = 0; j < 100; j++)
            assert_int_equal(objects[i][j], i);
    size_t peak = account.bytes;
    assert_true(peak >= 2000);
    for (int i = 0; i < 20; i++)
        mk__pool_put(&pool, objects[i]);
    assert_int_equal(pool.used, 0);
    for (int i = 0; i < 20; i++)
        objects[i] = mk__pool_get(&pool);
    assert_int_equal(account.bytes, peak);
    for (int i = 0; i < 20; i++)
        mk__pool_put(&pool, objects[i]);
    mk__pool_release(&pool);
    assert_int_equal(account.bytes, 0);
}

TEST(stops_at_the_budget)
{
    struct mk_account account = {.bytes_max = 500};
    struct mk__pool pool;
    void *objects[10];
    int n = 0;
    mk__pool_init(&pool, &account, 64, 2);
    while (n < 10 && (objects[n] = mk__pool_get(&pool)))
        n++;
    assert_in_range(n, 6, 7); /* with and without the heads of blocks */
    assert_int_equal(pool.used, n);
    while (n)
        mk__pool_put(&pool, objects[--n]);
    mk__pool_release(&pool);
    assert_int_equal(account.bytes, 0);
}

static int get_many(void *ctx)
{
    struct mk_account *account = ctx;
    struct mk__pool pool;
    void *objects[5];
    int n = 0;
    mk__pool_init(&pool, account, 32, 2);
    while (n < 5 && (objects[n] = mk__pool_get(&pool)))
        n++;
    int err = n == 5 ? 0 : -ENOMEM;
    while (n)
        mk__pool_put(&pool, objects[--n]);
    mk__pool_release(&pool);
    assert_int_equal(account->bytes, 0);
    return err;
}

TEST(failing_allocations)
{
    struct mk_account account = {0};
    assert_in_range(mk_test_failing_allocs(get_many, &account), 3, 5);
}

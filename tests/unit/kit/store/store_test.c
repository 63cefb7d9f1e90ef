// SPDX-License-Identifier: Apache-2.0
/* The store: what is found, how long it is valid, when it is released, limits, and allocations that fail. */
#include "testing.h"

#include "store_kit.h"

#include <errno.h>
#include <pthread.h>

TEST(items)
{
    struct mk_store *store = open_store(1 << 20);
    assert_null(find(store, "a"));
    struct mk_item *a = put(store, BODY, "a", 100);
    assert_ptr_equal(find(store, "a"), a);
    assert_int_equal((uintptr_t)mk_item_data(a) % 16, 0);
    assert_int_equal(a->data_bytes, 100);
    assert_int_equal(a->key_bytes, 1);
    assert_memory_equal(mk_item_key(a), "a", 1);
    assert_int_equal(((char *)mk_item_data(a))[99], 'a');
    assert_null(find(store, "b"));
    struct mk_item *other = put(store, NAME, "a", 200);
    assert_ptr_equal(find(store, "a"), other);
    assert_int_equal(released[BODY], 1);
    assert_int_equal(stats_of(store, BODY).items, 0);
    assert_int_equal(stats_of(store, NAME).items, 1);
    assert_true(mk_store_remove(store, mk_item_get(other)));
    assert_false(mk_store_remove(store, other));
    mk_item_put(other);
    assert_null(find(store, "a"));
    check_store(store);
    mk_store_reclaim(store);
    assert_int_equal(released[NAME], 1);
    mk_store_discard(store, draft(store, BODY, "c", 10));
    assert_null(find(store, "c"));
    put(store, BODY, "", 0);
    assert_non_null(find(store, ""));
    mk_store_free(store);
    assert_int_equal(released[BODY], 2);
    mk_store_free(NULL);
}

/* What another thread may ask, which has no loop: no item is used by that. */
TEST(has_an_item)
{
    struct mk_store *store = open_store(1 << 20);
    uint64_t hash = mk_store_hash(store, "a", 1);
    assert_false(mk_store_has(store, hash, "a", 1));
    struct mk_item *a = put(store, BODY, "a", 100);
    assert_true(mk_store_has(store, hash, "a", 1));
    assert_int_equal(a->uses, 0);
    assert_false(mk_store_has(store, hash, "b", 1)); /* the whole key is compared */
    mk_item_get(a);
    mk_store_remove(store, a);
    assert_false(mk_store_has(store, hash, "a", 1));
    mk_item_put(a);
    mk_store_free(store);
}

TEST(configurations_that_are_refused)
{
    struct mk_store *store;
    struct mk_store_kind kinds[MK_STORE_KINDS_MAX + 1] = {{.name = "x"}};
    struct mk_store_conf conf = {.bytes_max = 1 << 20, .kinds = kinds};
    assert_int_equal(mk_store_new(&conf, &store), -EINVAL);
    conf.n_kinds = MK_STORE_KINDS_MAX + 1;
    assert_int_equal(mk_store_new(&conf, &store), -EINVAL);
    conf.n_kinds = 1;
    conf.bytes_max = MK_STORE_BYTES_MIN - 1;
    assert_int_equal(mk_store_new(&conf, &store), -EINVAL);
    conf.bytes_max = MK_STORE_BYTES_MIN;
    kinds[0].share = 101;
    assert_int_equal(mk_store_new(&conf, &store), -EINVAL);
    kinds[0] = (struct mk_store_kind){.name = "x", .items_max = 1, .share = 100};
    assert_int_equal(mk_store_new(&conf, &store), -EINVAL);
    kinds[0].share = 99;
    assert_int_equal(mk_store_new(&conf, &store), 0);
    mk_store_free(store);
}

/* ── lifetimes ── */

TEST(items_are_valid_until_the_turn_ends)
{
    struct mk_loop loop;
    struct mk_store *store = open_store(1 << 20);
    assert_int_equal(mk__loop_open(&loop, &mk__poller_epoll, &mk__clock_system, NULL), 0);
    mk_epoch_join(&loop);
    struct mk_item *a = put(store, BODY, "a", 100);
    assert_true(mk_store_remove(store, a));
    mk_store_reclaim(store);
    assert_int_equal(released[BODY], 0);
    assert_int_equal(((char *)mk_item_data(a))[99], 'a');
    mk__epoch_idle(&loop.epoch);
    mk_store_reclaim(store);
    assert_int_equal(released[BODY], 1);
    mk__loop_close(&loop);
    mk_store_free(store);
}

TEST(references)
{
    struct mk_store *store = open_store(1 << 20);
    struct mk_item *a = mk_item_get(put(store, BODY, "a", 100));
    assert_true(mk_store_remove(store, a));
    mk_store_reclaim(store);
    assert_int_equal(released[BODY], 0);
    assert_int_equal(((char *)mk_item_data(a))[99], 'a');
    mk_item_put(a);
    assert_int_equal(released[BODY], 1);
    struct mk_item *b = draft(store, BODY, "b", 10);
    mk_item_get(b); /* before others can see it */
    mk_store_put(store, b);
    mk_store_remove(store, b);
    mk_item_put(b);
    mk_store_reclaim(store);
    assert_int_equal(released[BODY], 2);
    mk_store_free(store);
}

/* ── keys ── */

TEST(keys_with_the_same_hash)
{
    enum { N = 500 };
    struct mk_store *store = open_store(1 << 20);
    for (unsigned i = 0; i < N; i++) {
        struct mk_item *item = mk_store_draft(store, BODY, 7, &i, sizeof(i), sizeof(i));
        assert_non_null(item);
        memcpy(mk_item_data(item), &i, sizeof(i));
        mk_store_put(store, item);
    }
    for (unsigned i = 0; i < N; i++) {
        struct mk_item *item = mk_store_find(store, 7, &i, sizeof(i));
        assert_non_null(item);
        assert_memory_equal(mk_item_data(item), &i, sizeof(i));
        assert_null(mk_store_find(store, 7 | 1ULL << 40, &i, sizeof(i)));
        assert_null(mk_store_find(store, 7, &i, sizeof(i) - 1));
    }
    for (unsigned i = 0; i < N; i += 2)
        assert_true(mk_store_remove(store, mk_store_find(store, 7, &i, sizeof(i))));
    for (unsigned i = 0; i < N; i++)
        assert_true(!mk_store_find(store, 7, &i, sizeof(i)) == !(i % 2));
    check_store(store);
    mk_store_free(store);
}

/* ── limits ── */

TEST(items_larger_than_allowed)
{
    struct mk_store *store = open_store(1 << 20);
    size_t most = (1 << 20) / MK_STORE_ITEM_SHARE - 64;
    assert_non_null(put(store, BODY, "", most));
    assert_null(put(store, BODY, "", most + 1));
    assert_null(put(store, BODY, "a", most));
    assert_null(mk_store_draft(store, BODY, 1, "a", 1, SIZE_MAX - 8));
    assert_int_equal(stats_of(store, BODY).refused, 3);
    mk_store_free(store);
}

TEST(limits_of_items)
{
    struct mk_store *store = open_store(1 << 20);
    for (unsigned i = 0; i < 1000; i++) {
        assert_non_null(put(store, NAME, nth("n", i), 10));
        assert_true(stats_of(store, NAME).items <= 100);
    }
    assert_int_equal(stats_of(store, NAME).items, 100);
    assert_int_equal(stats_of(store, NAME).evicted, 900);
    mk_store_set_items_max(store, NAME, 10);
    assert_int_equal(stats_of(store, NAME).items, 10);
    mk_store_set_items_max(store, NAME, 50);
    for (unsigned i = 0; i < 1000; i++)
        put(store, NAME, nth("n", i), 10);
    assert_int_equal(stats_of(store, NAME).items, 50);
    mk_store_free(store);
}

TEST(names_displace_no_bodies)
{
    struct mk_store *store = open_kinds(4 << 20, 1000, 0, 5);
    unsigned bodies = 0;
    while (!stats_of(store, BODY).evicted)
        assert_non_null(put(store, BODY, nth("b", bodies++), 2000));
    uint64_t evicted = stats_of(store, BODY).evicted;
    for (unsigned i = 0; i < 100000; i++)
        assert_non_null(put(store, NAME, nth("n", i), 64));
    assert_int_equal(stats_of(store, NAME).items, 1000);
    assert_int_equal(stats_of(store, BODY).evicted, evicted);
    put(store, BODY, nth("b", bodies++), 2000);
    assert_true(stats_of(store, BODY).evicted < evicted + 40);
    assert_int_equal(stats_of(store, NAME).items, 1000);
    check_store(store);
    mk_store_free(store);
}

TEST(shares)
{
    struct mk_store *store = open_kinds(1 << 20, 0, 25, 0);
    for (unsigned i = 0; i < 1000; i++)
        assert_non_null(put(store, BODY, nth("b", i), 2000));
    assert_in_range(stats_of(store, BODY).bytes, (1 << 18) - 8000, 1 << 18);
    for (unsigned i = 0; i < 1000; i++)
        assert_non_null(put(store, NAME, nth("n", i), 2000));
    assert_in_range(stats_of(store, NAME).bytes, 1 << 19, 1 << 20);
    for (unsigned i = 0; i < 1000; i++) /* the larger set gives memory */
        assert_non_null(put(store, BODY, nth("b", i), 2000));
    assert_in_range(stats_of(store, BODY).bytes, (1 << 18) - 8000, 1 << 18);
    check_store(store);
    mk_store_free(store);
}

/* ── admission ── */

TEST(admission)
{
    struct mk_store *store = open_store(1 << 20);
    uint64_t a = hash_of(store, "a");
    assert_false(mk_store_admits(store, BODY, a));
    assert_true(mk_store_admits(store, BODY, a));
    unsigned admitted = 0;
    for (unsigned i = 0; i < 100000; i++)
        admitted += mk_store_admits(store, BODY, hash_of(store, nth("once", i)));
    assert_true(admitted < 40);
    assert_false(mk_store_admits(store, BODY, a)); /* forgotten */
    for (unsigned i = 0; i < 300; i++)
        mk_store_admits(store, BODY, hash_of(store, nth("some", i)));
    assert_true(mk_store_admits(store, BODY, a));
    put(store, BODY, "a", 10);
    assert_int_equal(mk_store_evict(store, BODY, 1), 1);
    for (unsigned i = 0; i < 100000; i++)
        mk_store_admits(store, BODY, hash_of(store, nth("once", i)));
    assert_true(mk_store_admits(store, BODY, a)); /* it was evicted a short time ago */
    mk_store_free(store);
}

TEST(invented_names_are_remembered_apart)
{
    struct mk_store *store = open_store(1 << 20);
    uint64_t a = hash_of(store, "a"), b = hash_of(store, "b");
    assert_false(mk_store_admits(store, BODY, a));
    put(store, BODY, "b", 10);
    mk_store_evict(store, BODY, 1);
    for (unsigned i = 0; i < 50000; i++) {
        mk_store_admits(store, NAME, hash_of(store, nth("n", i)));
        put(store, NAME, nth("n", i), 10);
    }
    assert_true(mk_store_admits(store, NAME, hash_of(store, nth("n", 49999))));
    assert_true(mk_store_admits(store, BODY, a));
    assert_true(mk_store_admits(store, BODY, b));
    mk_store_free(store);
}

/* A store may be made with the least budget, and get its own later. */
TEST(admission_grows_with_the_budget)
{
    unsigned seen = 0;
    struct mk_store *store = open_store(MK_STORE_BYTES_MIN);
    mk_store_set_limit(store, 32 << 20);
    for (unsigned i = 0; i < 10000; i++)
        mk_store_admits(store, BODY, hash_of(store, nth("k", i)));
    for (unsigned i = 0; i < 10000; i++)
        seen += mk_store_admits(store, BODY, hash_of(store, nth("k", i)));
    assert_true(seen > 9800);
    check_store(store);
    mk_store_free(store);
}

/* ── each, evict ── */

static unsigned visited;

static bool remove_odd(struct mk_item *item, void *ctx)
{
    const char *key = mk_item_key(item);
    assert_null(ctx);
    visited++;
    return key[item->key_bytes - 1] % 2;
}

TEST(each)
{
    struct mk_store *store = open_store(1 << 20);
    for (unsigned i = 0; i < 200; i++)
        put(store, i < 100 ? BODY : NAME, nth("k", i), 10);
    visited = 0;
    mk_store_each(store, BODY, remove_odd, NULL);
    assert_int_equal(visited, 100);
    assert_int_equal(released[BODY], 50);
    for (unsigned i = 0; i < 200; i++)
        assert_true(!find(store, nth("k", i)) == (i < 100 && i % 2));
    check_store(store);
    mk_store_free(store);
    assert_int_equal(released[BODY] + released[NAME], 200);
}

TEST(evict)
{
    struct mk_store *store = open_store(1 << 20);
    assert_int_equal(mk_store_evict(store, BODY, 5), 0);
    for (unsigned i = 0; i < 100; i++)
        put(store, i % 2 ? BODY : NAME, nth("k", i), 10);
    assert_int_equal(mk_store_evict(store, BODY, 20), 20);
    assert_int_equal(stats_of(store, BODY).items, 30);
    assert_int_equal(stats_of(store, NAME).items, 50);
    assert_int_equal(mk_store_evict(store, BODY, 50), 30);
    assert_int_equal(stats_of(store, BODY).evicted, 50);
    mk_store_free(store);
}

/* ── allocations that fail ── */

static int fill_some(void *ctx)
{
    struct mk_store *store;
    const struct mk_store_kind kind = {.name = "x"};
    struct mk_store_conf conf = {.bytes_max = 1 << 20, .kinds = &kind, .n_kinds = 1, .ctx = ctx};
    int err = mk_store_new(&conf, &store);
    uint64_t refused = 0;
    if (err < 0)
        return err;
    for (unsigned i = 0; i < 100; i++)
        refused += !put(store, 0, nth("k", i), 1500);
    check_store(store);
    unsigned found = 0;
    for (unsigned i = 0; i < 100; i++)
        found += find(store, nth("k", i)) != NULL;
    assert_int_equal(found, stats_of(store, 0).items);
    assert_int_equal(found, 100 - refused - stats_of(store, 0).evicted);
    mk_store_free(store);
    return found < 100 ? -ENOMEM : 0;
}

TEST(failing_mappings)
{
    for (long n = 0;; n++) {
        mk__pages_countdown = n;
        int result = fill_some(NULL);
        bool all_fine = mk__pages_countdown >= 0;
        mk__pages_countdown = -1;
        if (all_fine) {
            assert_int_equal(result, 0);
            assert_true(n >= 3);
            return;
        }
        assert_true(result < 0);
    }
}

/* Tables that cannot be made are a refusal, those that cannot grow are none. */
TEST(failing_tables)
{
    for (long n = 0; n < 200; n++) {
        mk__alloc_countdown = n;
        int result = fill_some(NULL);
        bool all_fine = mk__alloc_countdown >= 0;
        mk__alloc_countdown = -1;
        assert_true(result == 0 || !all_fine);
        if (all_fine)
            return;
    }
    fail();
}

/* Without memory for larger tables each part continues with its first one. */
TEST(tables_that_never_grow)
{
    struct mk_store *store = open_store(1 << 20);
    for (unsigned i = 0; i < 64; i++) {
        struct mk_item *item = mk_store_draft(store, BODY, (uint64_t)i << 58, "k", 1, 1);
        mk_store_put(store, item);
    }
    uint64_t table_bytes = store->budget.table_bytes;
    for (unsigned i = 0; i < 3000; i++) {
        uint64_t hash = hash_of(store, nth("k", i));
        struct mk_item *item = mk_store_draft(store, BODY, hash, &i, sizeof(i), 1);
        assert_non_null(item);
        mk__alloc_countdown = 0;
        mk_store_put(store, item);
        mk__alloc_countdown = -1;
        assert_ptr_equal(mk_store_find(store, hash, &i, sizeof(i)), item);
        check_store(store);
    }
    assert_int_equal(stats_of(store, BODY).items, 64 * 7);
    assert_int_equal(store->budget.table_bytes, table_bytes);
    mk_store_free(store);
}

/* A store does not initialise the locks of its parts. */
TEST(zeros_are_an_open_mutex)
{
    static const pthread_mutex_t zeros, open = PTHREAD_MUTEX_INITIALIZER;
    assert_memory_equal(&open, &zeros, sizeof(zeros));
}

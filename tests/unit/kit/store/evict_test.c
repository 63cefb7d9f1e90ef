// SPDX-License-Identifier: Apache-2.0
/* Memory: what items cost, what an empty store costs, and how room is made when sizes change or others hold items. */
#include "testing.h"

#include <stdlib.h>
#include <time.h>

#include "store_kit.h"

static size_t count_resident(const void *p, size_t bytes)
{
    unsigned char pages[1024];
    size_t page = (size_t)sysconf(_SC_PAGESIZE), n = 0;
    assert_true(bytes / page <= COUNT(pages));
    assert_int_equal(mincore((void *)(uintptr_t)p, bytes, pages), 0);
    for (size_t i = 0; i < bytes / page; i++)
        n += pages[i] & 1;
    return n * page;
}

TEST(an_empty_store_is_small)
{
    struct mk_store *store = open_store(32 << 20);
    assert_null(find(store, "a"));
    size_t resident = count_resident(store, store->map_bytes);
    print_message("a store of 32 MB without items: %zu bytes used, %zu mapped\n", resident, store->map_bytes);
    assert_true(resident <= 16384);
    assert_int_equal(store->slabs.map_bytes, 0);
    mk_store_free(store);
}

/* 10,000 files of 1 to 8.2 KB, 4.6 KB on average, with the keys and fields that files have. */
TEST(files_cost_little_more_than_their_bytes)
{
    enum { N = 10000, FIELDS = 160 };
    struct mk_store *store = open_store(64 << 20);
    uint64_t bytes = 0;
    for (unsigned i = 0; i < N; i++) {
        size_t body = 1000 + i * 7919 % 7200;
        assert_non_null(put(store, BODY, nth("0000000000000000-assets/images/2026/picture-", i), body));
        bytes += body;
    }
    assert_int_equal(stats_of(store, BODY).items, N);
    uint64_t all = mk_store_bytes(store);
    print_message("%d files of %.0f bytes: %.1f bytes more for each, %.3f times their bytes\n", N, (double)bytes / N,
                  (double)(all - bytes) / N, (double)all / (double)bytes);
    assert_true(all < bytes + bytes * 15 / 100);
    check_store(store);
    mk_store_free(store);
}

TEST(small_items)
{
    struct mk_store *store = open_store(8 << 20);
    for (unsigned i = 0; !stats_of(store, BODY).evicted; i++)
        assert_non_null(put(store, BODY, nth("0000000000000000-assets/missing-", i), 0));
    uint64_t items = stats_of(store, BODY).items;
    print_message("items without data: %.0f bytes each\n", (double)mk_store_bytes(store) / (double)items);
    assert_true(mk_store_bytes(store) / items < 180);
    check_store(store);
    mk_store_free(store);
}

static uint64_t found_bytes; /* of items with `found_size` */
static size_t found_size;

static bool add_size(struct mk_item *item, void *ctx)
{
    (void)ctx;
    found_bytes += item->data_bytes == found_size ? found_size : 0;
    return false;
}

/* Puts items that are asked for again. Returns how many it took until they fill three quarters of the budget. */
static unsigned fill(struct mk_store *store, const char *prefix, size_t bytes)
{
    unsigned n = 0;
    for (found_bytes = 0; found_bytes < store->budget.max / 4 * 3;) {
        assert_true(n * bytes < 8 * store->budget.max);
        put(store, BODY, nth(prefix, n), bytes);
        find(store, nth(prefix, n++));
        check_store(store);
        found_bytes = 0;
        found_size = bytes;
        mk_store_each(store, BODY, add_size, NULL);
    }
    return n;
}

TEST(sizes_change)
{
    static const size_t sizes[] = {8000, 30000, 900, 16000, 12000, 2000, 30000};
    struct mk_store *store = open_store(2 << 20);
    for (unsigned i = 0; i < COUNT(sizes); i++) {
        char prefix[] = {(char)('a' + i), '\0'};
        unsigned puts = fill(store, prefix, sizes[i]);
        print_message("items of %zu bytes: %u puts until they fill 3/4 of the budget\n", sizes[i], puts);
    }
    mk_store_free(store);
}

/* Small items that are asked for all the time lie everywhere; a large one finds room nevertheless. */
TEST(large_items_among_popular_ones)
{
    struct mk_store *store = open_store(2 << 20);
    unsigned n = 0, large = 0;
    while (!stats_of(store, BODY).evicted)
        put(store, BODY, nth("s", n++), 300);
    for (unsigned round = 0; round < 40; round++) {
        for (unsigned i = 0; i < n; i++)
            find(store, nth("s", i));
        large += put(store, BODY, nth("large", round), 30000) != NULL;
        check_store(store);
    }
    assert_true(large > 35);
    mk_store_free(store);
}

/* ── loops that still see items, and references ── */

TEST(a_long_turn)
{
    struct mk_loop loop;
    struct mk_store *store = open_kinds(4 << 20, 100, 0, 0);
    unsigned n = 0, put_in_turn = 0;
    while (!stats_of(store, BODY).evicted)
        put(store, BODY, nth("k", n++), 4000);
    uint64_t items = stats_of(store, BODY).items;
    assert_int_equal(mk__loop_open(&loop, &mk__poller_epoll, &mk__clock_system, NULL), 0);
    mk_epoch_join(&loop);
    for (unsigned i = 0; i < 1000; i++) {
        put_in_turn += put(store, BODY, nth("k", n++), 4000) != NULL;
        assert_true(mk_store_bytes(store) <= 4 << 20);
    }
    assert_in_range(put_in_turn, 4, 100);
    assert_true(stats_of(store, BODY).items > items * 9 / 10); /* the rest was not evicted in vain */
    mk__epoch_idle(&loop.epoch);
    mk__epoch_enter(&loop.epoch);
    assert_non_null(put(store, BODY, "after", 4000));
    mk__loop_close(&loop);
    check_store(store);
    mk_store_free(store);
}

TEST(held_items)
{
    static struct mk_item *held[2000];
    struct mk_store *store = open_store(1 << 20);
    unsigned n = 0;
    for (unsigned i = 0; i < COUNT(held); i++) {
        struct mk_item *item = put(store, BODY, nth("k", i), 4000);
        if (item && find(store, nth("k", i)))
            held[n++] = mk_item_get(item);
        assert_true(mk_store_bytes(store) <= 1 << 20);
    }
    assert_in_range(n, 150, 260);
    assert_true(!put(store, BODY, "more", 4000) || !find(store, "more")); /* nothing else can be evicted */
    for (unsigned i = 0; i < n; i++) {
        assert_int_equal(((char *)mk_item_data(held[i]))[3999], 'k');
        mk_item_put(held[i]);
    }
    assert_non_null(put(store, BODY, "more", 4000));
    check_store(store);
    mk_store_free(store);
}

/* ── limits that change ── */

TEST(smaller_and_larger_budgets)
{
    struct mk_store *store = open_store(16 << 20);
    unsigned n = 0;
    while (!stats_of(store, BODY).evicted)
        put(store, BODY, nth("k", n++), 4000);
    struct mk_item *held = mk_item_get(find(store, nth("k", n - 1)));
    mk_store_set_limit(store, 3 << 20);
    mk_store_reclaim(store);
    assert_true(mk_store_bytes(store) <= (3 << 20) + (2 << 20)); /* the slab of the item that is held */
    mk_item_put(held);
    mk_store_set_limit(store, 3 << 20);
    assert_true(mk_store_bytes(store) <= 3 << 20);
    assert_true(stats_of(store, BODY).bytes > 1 << 20);
    for (unsigned i = 0; i < 3000; i++)
        put(store, BODY, nth("m", i), 4000);
    check_store(store);
    assert_in_range(stats_of(store, BODY).bytes, 2 << 20, 3 << 20);
    mk_store_set_limit(store, 16 << 20);
    for (unsigned i = 0; i < 6000; i++)
        put(store, BODY, nth("l", i), 4000);
    assert_in_range(stats_of(store, BODY).bytes, 13 << 20, 16 << 20);
    check_store(store);
    mk_store_set_limit(store, 0);
    assert_true(mk_store_bytes(store) <= MK_STORE_BYTES_MIN);
    mk_store_free(store);
}

TEST(everything_is_given_back)
{
    struct mk_store *store = open_store(16 << 20);
    for (unsigned i = 0; i < 3000; i++)
        put(store, BODY, nth("k", i), 4000);
    assert_int_equal(mk_store_evict(store, BODY, UINT64_MAX), 3000);
    assert_int_equal(stats_of(store, BODY).bytes, 0);
    assert_true(store->slabs.map_bytes <= 2 << 20);
    check_store(store);
    mk_store_free(store);
}

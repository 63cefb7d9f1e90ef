// SPDX-License-Identifier: Apache-2.0
/* The store: what is found, what is evicted, who frees it, and what it costs. */
#include "testing.h"

#include <monkey/store.h>
#include <stdlib.h>

#include "store/store.h"

enum { BODY, NAME, KINDS };

static uint64_t released[KINDS];

static void count_release(struct mk_item *item, void *ctx)
{
    assert_ptr_equal(ctx, released);
    released[item->kind]++;
}

static const struct mk_store_kind kinds[KINDS] = {
    [BODY] = {.name = "bodies", .release = count_release},
    [NAME] = {.name = "names", .items_max = 100, .share = 5, .release = count_release},
};

static struct mk_store *open_store(uint64_t bytes_max)
{
    struct mk_store *store;
    struct mk_store_conf conf = {.bytes_max = bytes_max, .kinds = kinds, .n_kinds = KINDS, .ctx = released};
    memset(released, 0, sizeof(released));
    assert_int_equal(mk_store_new(&conf, &store), 0);
    return store;
}

static struct mk_item *find(struct mk_store *store, const char *key)
{
    return mk_store_find(store, mk_store_hash(store, key, strlen(key)), key, strlen(key));
}

/* Puts an item whose data is filled with the first byte of its key. Returns it, NULL if there is no room. */
static struct mk_item *put(struct mk_store *store, unsigned kind, const char *key, size_t bytes)
{
    struct mk_item *item = mk_store_draft(store, kind, mk_store_hash(store, key, strlen(key)), key, strlen(key), bytes);
    if (!item)
        return NULL;
    memset(mk_item_data(item), key[0], bytes);
    mk_store_put(store, item);
    return item;
}

static uint64_t count_items(struct mk_store *store, unsigned kind)
{
    struct mk_store_stats stats;
    mk_store_get_stats(store, kind, &stats);
    return stats.items;
}

static void test_items(void **state)
{
    (void)state;
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
    struct mk_item *other = put(store, BODY, "a", 200);
    assert_ptr_equal(find(store, "a"), other);
    assert_int_equal(released[BODY], 1);
    assert_int_equal(count_items(store, BODY), 1);
    assert_true(mk_store_remove(store, other));
    assert_null(find(store, "a"));
    assert_int_equal(count_items(store, BODY), 0);
    mk_store_reclaim(store);
    assert_int_equal(released[BODY], 2);
    mk_store_free(store);
    assert_int_equal(released[BODY], 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_items),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
/* What tests of the store have in common: a store of two kinds, items by text keys, and a loop that has joined. */
#ifndef MK_UNIT_STORE_KIT_H
#define MK_UNIT_STORE_KIT_H

#include "testing.h"

#include <monkey/kit/store.h>
#include <stdio.h>

#include "loop/loop.h"
#include "store/store.h"

enum { BODY, NAME, KINDS };

static uint64_t released[KINDS];

static inline void count_release(struct mk_item *item, void *ctx)
{
    assert_ptr_equal(ctx, released);
    released[item->kind]++;
}

static inline struct mk_store *open_kinds(uint64_t bytes_max, uint64_t names_max, unsigned body_share,
                                          unsigned name_share)
{
    struct mk_store *store = NULL;
    const struct mk_store_kind kinds[KINDS] = {
        [BODY] = {.name = "bodies", .share = body_share, .release = count_release},
        [NAME] = {.name = "names", .items_max = names_max, .share = name_share, .release = count_release},
    };
    struct mk_store_conf conf = {.bytes_max = bytes_max, .kinds = kinds, .n_kinds = KINDS, .ctx = released};
    memset(released, 0, sizeof(released));
    assert_int_equal(mk_store_new(&conf, &store), 0);
    return store;
}

static inline struct mk_store *open_store(uint64_t bytes_max)
{
    return open_kinds(bytes_max, 100, 0, 5);
}

static inline uint64_t hash_of(struct mk_store *store, const char *key)
{
    return mk_store_hash(store, key, strlen(key));
}

static inline struct mk_item *find(struct mk_store *store, const char *key)
{
    return mk_store_find(store, hash_of(store, key), key, strlen(key));
}

static inline struct mk_item *draft(struct mk_store *store, unsigned kind, const char *key, size_t bytes)
{
    struct mk_item *item = mk_store_draft(store, kind, hash_of(store, key), key, strlen(key), bytes);
    if (item)
        memset(mk_item_data(item), key[0], bytes);
    return item;
}

/* Puts an item whose data is filled with the first byte of its key. Returns it, NULL if there is no room. */
static inline struct mk_item *put(struct mk_store *store, unsigned kind, const char *key, size_t bytes)
{
    struct mk_item *item = draft(store, kind, key, bytes);
    if (item)
        mk_store_put(store, item);
    return item;
}

/* The key of the n-th item; valid until the next call. */
static inline const char *nth(const char *prefix, unsigned n)
{
    static char key[64];
    snprintf(key, sizeof(key), "%s%u", prefix, n);
    return key;
}

static inline struct mk_store_stats stats_of(struct mk_store *store, unsigned kind)
{
    struct mk_store_stats stats;
    mk_store_get_stats(store, kind, &stats);
    return stats;
}

/* Checks what holds at any time between two calls. */
static inline void check_store(struct mk_store *store)
{
    uint64_t items = 0, bytes = 0;
    for (unsigned i = 0; i < MK_STORE_SHARDS; i++) {
        struct mk__table *t = store->shards[i].table;
        uint32_t live = 0, full = 0;
        for (uint32_t n = 0; t && n <= t->mask; n++) {
            live += mk__table_item(t->slots[n]) != NULL;
            full += t->slots[n] != 0;
        }
        assert_true(!t || (t->items == live && t->full == full && full <= t->mask));
        items += live;
    }
    for (unsigned kind = 0; kind < store->n_kinds; kind++) {
        items -= stats_of(store, kind).items;
        bytes += stats_of(store, kind).bytes;
    }
    assert_int_equal(items, 0);
    assert_true(bytes + store->slabs.free_bytes <= store->slabs.map_bytes);
    assert_int_equal(store->budget.bytes,
                     store->slabs.map_bytes + store->map_bytes + store->history_bytes + store->budget.table_bytes);
    assert_true(mk_store_bytes(store) <= store->budget.max);
}

#endif

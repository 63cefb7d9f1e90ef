// SPDX-License-Identifier: Apache-2.0
/*
 * Keys and values in memory, sorted by the bytes of the keys: a skip list under a mutex, with a limit of bytes and
 * items. Any thread. The order makes it independent of what keys clients choose, and gives cursors a place that stays
 * valid whatever is removed.
 */
#ifndef DUDA_PACKAGES_KV_TABLE_H
#define DUDA_PACKAGES_KV_TABLE_H

#include <monkey/base/str.h>

#include <pthread.h>

enum { KV_LEVELS = 16, KV_ITEM_BYTES = 96 }; /* what an item counts in addition to key and value */

struct kv_item {
    struct kv_item *older, *newer; /* by their last write */
    struct mk_str key, value;
    uint64_t ends_ms; /* UINT64_MAX: never */
    unsigned levels;
    struct kv_item *next[];
};

struct kv_limits {
    uint64_t bytes_max;
    uint32_t items_max;
    bool evicts; /* instead of an error the items are removed whose last write is the longest ago */
};

struct kv_table {
    pthread_mutex_t lock;
    struct kv_limits limits;
    struct kv_item *first[KV_LEVELS];
    struct kv_item *oldest, *newest;
    uint64_t bytes, random;
    uint32_t n;
};

enum kv_write { KV_PUT, KV_PUT_NEW, KV_APPEND };

enum kv_place { KV_FIRST, KV_LAST, KV_AT, KV_BEHIND, KV_BEFORE };

void kv_table_init(struct kv_table *t, const struct kv_limits *limits);
void kv_table_release(struct kv_table *t);

/*
 * Writes a value. `ends_ms`: when it ends, UINT64_MAX: never; KV_APPEND keeps the end of an item that is there. Returns
 * 0, -EEXIST (KV_PUT_NEW), -ENOSPC (the limits) or -ENOMEM; after an error the table is as before.
 */
int kv_table_write(struct kv_table *t, enum kv_write how, struct mk_str key, struct mk_str value, uint64_t ends_ms,
                   uint64_t now_ms);
/*
 * Adds to a number in decimal digits; without an item it is 0, and ends then. Returns 0, -EINVAL (the value is no
 * number), -ERANGE, -ENOSPC or -ENOMEM.
 */
int kv_table_add(struct kv_table *t, struct mk_str key, int64_t n, uint64_t ends_ms, uint64_t now_ms, int64_t *ret);
/* Returns 0 or -ENOENT. */
int kv_table_remove(struct kv_table *t, struct mk_str key, uint64_t now_ms);
/*
 * Finds an item by its place to `key`. Copies key and value, each with a NUL after it, for mem->free(); either result
 * may be NULL. Returns 0, -ENOENT or -ENOMEM.
 */
int kv_table_find(struct kv_table *t, enum kv_place place, struct mk_str key, uint64_t now_ms, struct mk_str *ret_key,
                  struct mk_str *ret_value);
/* Returns how many items there are, also of those that have ended but were not touched since. */
uint32_t kv_table_count(struct kv_table *t);

#endif

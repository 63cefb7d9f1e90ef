// SPDX-License-Identifier: Apache-2.0
/*
 * Sorted keys and values (table.h).
 */
#include "table.h"

#include <duda/mem.h>

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { PROBES = 64 };

/* The links that lead to a key: at each level the last one before it. */
struct path {
    struct kv_item **links[KV_LEVELS];
};

/* ── memory ── */

static struct mk_str dup_bytes(struct mk_str s, struct mk_str more)
{
    char *p = mem->alloc(s.len + more.len + 1);
    if (!p)
        return MK_STR_NONE;
    if (s.len)
        memcpy(p, s.p, s.len);
    if (more.len)
        memcpy(p + s.len, more.p, more.len);
    p[s.len + more.len] = '\0';
    return mk_str(p, s.len + more.len);
}

static void free_bytes(struct mk_str s)
{
    mem->free((char *)(uintptr_t)s.p);
}

static void free_item(struct kv_item *item)
{
    free_bytes(item->key);
    free_bytes(item->value);
    mem->free(item);
}

/* Returns 1 with 3/4, 2 with 3/16 ... (xorshift64) */
static unsigned choose_levels(struct kv_table *t)
{
    t->random ^= t->random << 13;
    t->random ^= t->random >> 7;
    t->random ^= t->random << 17;
    unsigned levels = 1 + (unsigned)__builtin_ctzll(t->random | 1ULL << 62) / 2;
    return levels < KV_LEVELS ? levels : KV_LEVELS;
}

static struct kv_item *new_item(struct kv_table *t, struct mk_str key)
{
    unsigned levels = choose_levels(t);
    struct kv_item *item = mem->alloc_z(sizeof(*item) + levels * sizeof(struct kv_item *));
    if (!item)
        return NULL;
    item->levels = levels;
    item->key = dup_bytes(key, MK_STR(""));
    if (item->key.p)
        return item;
    mem->free(item);
    return NULL;
}

void kv_table_init(struct kv_table *t, const struct kv_limits *limits)
{
    *t = (struct kv_table){.limits = *limits, .random = 0x9e3779b97f4a7c15U ^ (uintptr_t)t};
    pthread_mutex_init(&t->lock, NULL);
}

void kv_table_release(struct kv_table *t)
{
    while (t->first[0]) {
        struct kv_item *item = t->first[0];
        t->first[0] = item->next[0];
        free_item(item);
    }
    pthread_mutex_destroy(&t->lock);
}

/* ── order; t->lock is held ── */

/* Finds where a key is or belongs. Returns its item or NULL; `*ret_before` is the item before it, or NULL. */
static struct kv_item *search_tree(struct kv_table *t, struct mk_str key, struct path *ret, struct kv_item **ret_before)
{
    struct kv_item **links = t->first, *before = NULL;
    for (unsigned level = KV_LEVELS; level-- > 0;) {
        while (links[level] && mk_str_compare(links[level]->key, key) < 0) {
            before = links[level];
            links = before->next;
        }
        ret->links[level] = &links[level];
    }
    struct kv_item *found = *ret->links[0];
    if (ret_before)
        *ret_before = before;
    return found && mk_str_eq(found->key, key) ? found : NULL;
}

static void unlink_age(struct kv_table *t, struct kv_item *item)
{
    assert(item->older || t->oldest == item);
    assert(item->newer || t->newest == item);
    *(item->older ? &item->older->newer : &t->oldest) = item->newer;
    *(item->newer ? &item->newer->older : &t->newest) = item->older;
}

static void add_newest(struct kv_table *t, struct kv_item *item)
{
    item->older = t->newest;
    item->newer = NULL;
    *(t->newest ? &t->newest->newer : &t->oldest) = item;
    t->newest = item;
}

static uint64_t get_bytes(struct mk_str key, struct mk_str value)
{
    return KV_ITEM_BYTES + key.len + value.len;
}

static void remove_item(struct kv_table *t, struct kv_item *item)
{
    struct path path;
    search_tree(t, item->key, &path, NULL);
    assert(*path.links[0] == item);
    for (unsigned level = 0; level < item->levels; level++)
        *path.links[level] = item->next[level];
    unlink_age(t, item);
    assert(t->n > 0 && t->bytes >= get_bytes(item->key, item->value));
    t->n--;
    t->bytes -= get_bytes(item->key, item->value);
    free_item(item);
}

static void insert_item(struct kv_table *t, struct kv_item *item)
{
    assert(item->levels >= 1 && item->levels <= KV_LEVELS && item->value.p);
    struct path path;
    search_tree(t, item->key, &path, NULL);
    for (unsigned level = 0; level < item->levels; level++) {
        item->next[level] = *path.links[level];
        *path.links[level] = item;
    }
    add_newest(t, item);
    t->n++;
    t->bytes += get_bytes(item->key, item->value);
}

/* Finds an item that has not ended; removes it if it has. */
static struct kv_item *find_item(struct kv_table *t, struct mk_str key, uint64_t now_ms)
{
    struct path path;
    struct kv_item *item = search_tree(t, key, &path, NULL);
    if (!item || now_ms < item->ends_ms)
        return item;
    remove_item(t, item);
    return NULL;
}

/* ── writing; t->lock is held ── */

static bool fits_limits(const struct kv_table *t, uint64_t bytes, uint32_t items)
{
    return t->bytes + bytes <= t->limits.bytes_max && t->n + items <= t->limits.items_max;
}

/* Removes what has ended, or else the oldest, until an item fits; not `keep`. Returns 0 or -ENOSPC. */
static int make_room(struct kv_table *t, uint64_t bytes, uint32_t items, const struct kv_item *keep, uint64_t now_ms)
{
    assert(items <= 1);
    if (bytes > t->limits.bytes_max)
        return -ENOSPC;
    unsigned probes = 0;
    for (struct kv_item *item = t->oldest, *newer; item && !fits_limits(t, bytes, items); item = newer) {
        newer = item->newer;
        if (!t->limits.evicts && ++probes > PROBES)
            break; /* a full store is not read whole for each write */
        if (item != keep && (t->limits.evicts || now_ms >= item->ends_ms))
            remove_item(t, item);
    }
    return fits_limits(t, bytes, items) ? 0 : -ENOSPC;
}

static int replace_value(struct kv_table *t, struct kv_item *item, struct mk_str value, uint64_t now_ms)
{
    uint64_t more = value.len > item->value.len ? value.len - item->value.len : 0;
    int err = get_bytes(item->key, value) > t->limits.bytes_max ? -ENOSPC : make_room(t, more, 0, item, now_ms);
    if (err < 0)
        return err;
    assert(t->bytes >= item->value.len);
    t->bytes = t->bytes - item->value.len + value.len;
    free_bytes(item->value);
    item->value = value;
    unlink_age(t, item);
    add_newest(t, item);
    return 0;
}

static int add_item(struct kv_table *t, struct mk_str key, struct mk_str value, uint64_t ends_ms, uint64_t now_ms)
{
    int err = make_room(t, get_bytes(key, value), 1, NULL, now_ms);
    struct kv_item *item = err < 0 ? NULL : new_item(t, key);
    if (!item)
        return err < 0 ? err : -ENOMEM;
    item->value = value;
    item->ends_ms = ends_ms;
    insert_item(t, item);
    return 0;
}

static int write_locked(struct kv_table *t, enum kv_write how, struct mk_str key, struct mk_str value, uint64_t ends_ms,
                        uint64_t now_ms)
{
    assert(how <= KV_APPEND && (value.p || !value.len));
    struct kv_item *item = find_item(t, key, now_ms);
    if (item && how == KV_PUT_NEW)
        return -EEXIST;
    bool appends = item && how == KV_APPEND;
    if (get_bytes(key, value) + (appends ? item->value.len : 0) > t->limits.bytes_max)
        return -ENOSPC;
    struct mk_str copy = dup_bytes(appends ? item->value : MK_STR(""), value);
    if (!copy.p)
        return -ENOMEM;
    int err = item ? replace_value(t, item, copy, now_ms) : add_item(t, key, copy, ends_ms, now_ms);
    if (err < 0)
        free_bytes(copy);
    else if (item && !appends)
        item->ends_ms = ends_ms;
    return err;
}

int kv_table_write(struct kv_table *t, enum kv_write how, struct mk_str key, struct mk_str value, uint64_t ends_ms,
                   uint64_t now_ms)
{
    pthread_mutex_lock(&t->lock);
    int err = write_locked(t, how, key, value, ends_ms, now_ms);
    pthread_mutex_unlock(&t->lock);
    return err;
}

/* ── numbers ── */

/* Reads decimal digits with an optional "-". */
static int parse_number(struct mk_str text, int64_t *ret)
{
    bool negative = text.len && text.p[0] == '-';
    uint64_t n;
    if (negative)
        text = mk_str_after(text, 1);
    if (!mk_str_u64(text, (uint64_t)INT64_MAX + negative, &n))
        return -EINVAL;
    *ret = negative ? (int64_t)(0 - n) : (int64_t)n;
    return 0;
}

static int add_locked(struct kv_table *t, struct mk_str key, int64_t n, uint64_t ends_ms, uint64_t now_ms, int64_t *ret)
{
    char text[24];
    int64_t before = 0;
    struct kv_item *item = find_item(t, key, now_ms);
    int err = item ? parse_number(item->value, &before) : 0;
    if (err < 0)
        return err;
    if (__builtin_add_overflow(before, n, ret))
        return -ERANGE;
    snprintf(text, sizeof(text), "%" PRId64, *ret);
    return write_locked(t, KV_PUT, key, mk_str_c(text), item ? item->ends_ms : ends_ms, now_ms);
}

int kv_table_add(struct kv_table *t, struct mk_str key, int64_t n, uint64_t ends_ms, uint64_t now_ms, int64_t *ret)
{
    pthread_mutex_lock(&t->lock);
    int err = add_locked(t, key, n, ends_ms, now_ms, ret);
    pthread_mutex_unlock(&t->lock);
    return err;
}

/* ── the rest ── */

int kv_table_remove(struct kv_table *t, struct mk_str key, uint64_t now_ms)
{
    pthread_mutex_lock(&t->lock);
    struct kv_item *item = find_item(t, key, now_ms);
    if (item)
        remove_item(t, item);
    pthread_mutex_unlock(&t->lock);
    return item ? 0 : -ENOENT;
}

static struct kv_item *get_last(struct kv_table *t)
{
    struct kv_item **links = t->first, *last = NULL;
    for (unsigned level = KV_LEVELS; level-- > 0;) {
        while (links[level]) {
            last = links[level];
            links = last->next;
        }
    }
    return last;
}

static struct kv_item *find_at(struct kv_table *t, enum kv_place place, struct mk_str key)
{
    assert(place <= KV_BEFORE);
    struct path path;
    struct kv_item *before = NULL, *found = NULL;
    if (place == KV_FIRST || place == KV_LAST)
        return place == KV_FIRST ? t->first[0] : get_last(t);
    found = search_tree(t, key, &path, &before);
    if (place == KV_AT)
        return found;
    if (place == KV_BEFORE)
        return before;
    return found ? found->next[0] : *path.links[0];
}

/* Finds an item that has not ended; those on the way that have are removed. */
static struct kv_item *find_place(struct kv_table *t, enum kv_place place, struct mk_str key, uint64_t now_ms)
{
    struct kv_item *item;
    while ((item = find_at(t, place, key)) && now_ms >= item->ends_ms)
        remove_item(t, item);
    return item;
}

int kv_table_find(struct kv_table *t, enum kv_place place, struct mk_str key, uint64_t now_ms, struct mk_str *ret_key,
                  struct mk_str *ret_value)
{
    struct mk_str own_key = MK_STR_NONE, own_value = MK_STR_NONE;
    pthread_mutex_lock(&t->lock);
    const struct kv_item *item = find_place(t, place, key, now_ms);
    if (item && ret_key)
        own_key = dup_bytes(item->key, MK_STR(""));
    if (item && ret_value)
        own_value = dup_bytes(item->value, MK_STR(""));
    pthread_mutex_unlock(&t->lock);
    if (!item)
        return -ENOENT;
    if ((ret_key && !own_key.p) || (ret_value && !own_value.p)) {
        free_bytes(own_key);
        free_bytes(own_value);
        return -ENOMEM;
    }
    if (ret_key)
        *ret_key = own_key;
    if (ret_value)
        *ret_value = own_value;
    return 0;
}

uint32_t kv_table_count(struct kv_table *t)
{
    pthread_mutex_lock(&t->lock);
    uint32_t n = t->n;
    pthread_mutex_unlock(&t->lock);
    return n;
}

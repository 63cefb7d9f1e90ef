// SPDX-License-Identifier: Apache-2.0
/*
 * The package kv: stores with types and limits, and the stores of each service.
 */
#include "kv.h"

#include <duda/mem.h>

#include <errno.h>
#include <string.h>

enum { BYTES_MAX = 64 << 20, ITEMS_MAX = 1000000 };

struct kv_service {
    pthread_mutex_t lock; /* of the list */
    struct duda_kv *first;
};

extern struct duda_package kv_package;

/* ── the stores of a service ── */

struct duda_kv *kv_open(const struct duda_kv_conf *conf)
{
    struct kv_limits limits = {.bytes_max = BYTES_MAX, .items_max = ITEMS_MAX, .evicts = conf && conf->evicts};
    struct kv_service *service = duda_package_loader->service_state(&kv_package);
    struct duda_kv *store = service ? mem->alloc_z(sizeof(*store)) : NULL;
    errno = service ? ENOMEM : EPERM;
    if (!store)
        return NULL;
    if (conf && conf->bytes_max)
        limits.bytes_max = conf->bytes_max;
    if (conf && conf->items_max)
        limits.items_max = conf->items_max;
    kv_table_init(&store->table, &limits);
    store->self.db = store;
    pthread_mutex_lock(&service->lock);
    store->next = service->first;
    service->first = store;
    pthread_mutex_unlock(&service->lock);
    return store;
}

static void free_store(struct duda_kv *store)
{
    kv_table_release(&store->table);
    mem->free(store);
}

int kv_close(struct duda_kv *store)
{
    struct kv_service *service = duda_package_loader->service_state(&kv_package);
    if (!service)
        return -ENOENT;
    pthread_mutex_lock(&service->lock);
    struct duda_kv **link = &service->first;
    while (*link && *link != store)
        link = &(*link)->next;
    bool found = *link;
    if (found)
        *link = store->next;
    pthread_mutex_unlock(&service->lock);
    if (found)
        free_store(store);
    return found ? 0 : -ENOENT;
}

static void *start_service(void)
{
    struct kv_service *service = mem->alloc_z(sizeof(*service));
    if (service)
        pthread_mutex_init(&service->lock, NULL);
    return service;
}

static void stop_service(void *state)
{
    struct kv_service *service = state;
    while (service->first) {
        struct duda_kv *store = service->first;
        service->first = store->next;
        free_store(store);
    }
    pthread_mutex_destroy(&service->lock);
    mem->free(service);
}

/* ── the calls ── */

static bool is_key(const struct duda_kv *store, const char *key)
{
    return store && key && *key && strlen(key) <= DUDA_KV_KEY_BYTES;
}

static uint64_t get_end(uint64_t now_ms, uint32_t ttl_s)
{
    return ttl_s ? now_ms + 1000 * (uint64_t)ttl_s : UINT64_MAX;
}

static int write_item(struct duda_kv *store, enum kv_write how, const char *key, const void *value, size_t len,
                      uint32_t ttl_s)
{
    uint64_t now_ms = mk_time_monotonic_ms();
    if (!is_key(store, key) || (!value && len))
        return -EINVAL;
    return kv_table_write(&store->table, how, mk_str_c(key), mk_str(value, len), get_end(now_ms, ttl_s), now_ms);
}

static int put_value(struct duda_kv *store, const char *key, const void *value, size_t len, uint32_t ttl_s)
{
    return write_item(store, KV_PUT, key, value, len, ttl_s);
}

static int put_new(struct duda_kv *store, const char *key, const void *value, size_t len, uint32_t ttl_s)
{
    return write_item(store, KV_PUT_NEW, key, value, len, ttl_s);
}

static char *get_value(struct duda_kv *store, const char *key, size_t *ret_len)
{
    struct mk_str value = MK_STR_NONE;
    if (is_key(store, key))
        kv_table_find(&store->table, KV_AT, mk_str_c(key), mk_time_monotonic_ms(), NULL, &value);
    if (ret_len)
        *ret_len = value.len;
    return (char *)(uintptr_t)value.p;
}

static int add_to_value(struct duda_kv *store, const char *key, int64_t n, uint32_t ttl_s, int64_t *ret)
{
    uint64_t now_ms = mk_time_monotonic_ms();
    int64_t sum;
    if (!is_key(store, key))
        return -EINVAL;
    int err = kv_table_add(&store->table, mk_str_c(key), n, get_end(now_ms, ttl_s), now_ms, &sum);
    if (err == 0 && ret)
        *ret = sum;
    return err;
}

static int remove_key(struct duda_kv *store, const char *key)
{
    return is_key(store, key) ? kv_table_remove(&store->table, mk_str_c(key), mk_time_monotonic_ms()) : -EINVAL;
}

static size_t count_items(struct duda_kv *store)
{
    return store ? kv_table_count(&store->table) : 0;
}

static void free_pair(struct mk_str key, struct mk_str value)
{
    mem->free((char *)(uintptr_t)key.p);
    mem->free((char *)(uintptr_t)value.p);
}

/* Visits item after item by its key, without the lock of the table. */
static int visit_items(struct duda_kv *store, const char *prefix,
                       int (*fn)(const char *key, const char *value, size_t len, void *data), void *data)
{
    struct mk_str start = mk_str_c(prefix ? prefix : ""), key, value, last = MK_STR_NONE;
    if (!store || !fn)
        return -EINVAL;
    int err = kv_table_find(&store->table, KV_AT, start, mk_time_monotonic_ms(), &key, &value), result = 0;
    if (err == -ENOENT)
        err = kv_table_find(&store->table, KV_BEHIND, start, mk_time_monotonic_ms(), &key, &value);
    while (err == 0 && result == 0 && mk_str_starts(key, start)) {
        result = fn(key.p, value.p, value.len, data);
        free_pair(last, value);
        last = key;
        key = value = MK_STR_NONE;
        err = kv_table_find(&store->table, KV_BEHIND, last, mk_time_monotonic_ms(), &key, &value);
    }
    if (err == 0)
        free_pair(key, value);
    free_pair(last, MK_STR_NONE);
    return result ? result : err == -ENOENT ? 0 : err;
}

static struct duda_api_kv table;

static bool fill_table(void)
{
    table = kv_old_calls;
    table.open = kv_open;
    table.put = put_value;
    table.put_new = put_new;
    table.get = get_value;
    table.add = add_to_value;
    table.remove = remove_key;
    table.each = visit_items;
    table.count = count_items;
    return true;
}

DUDA_PACKAGE_MAIN_IF(fill_table(), kv_package, "kv", "2.0.0", &table, .service_start = start_service,
                     .service_stop = stop_service)

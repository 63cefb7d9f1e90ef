// SPDX-License-Identifier: Apache-2.0
/*
 * A sequence of operations on a small store: two bytes each, the operation and the key. Keys have few hashes, so that
 * they collide. What is found must be what was put last for the key, at any time until the turn ends, and the figures
 * must be right.
 */
#include <monkey/kit/store.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "loop/loop.h"
#include "store/store.h"

enum { KEYS = 256, HELD = 8, SEEN_MAX = 64, BYTES_MAX = MK_STORE_BYTES_MIN };

static struct fixture {
    struct mk_loop loop;
    struct mk_store *store;
    uint32_t version[KEYS]; /* of the last put; 0: it was removed */
    struct mk_item *held[HELD], *seen[SEEN_MAX];
    unsigned n_seen;
    uint32_t last;
    uint64_t puts, released;
} w;

struct content {
    uint32_t key, version;
    unsigned char rest[];
};

static void require(bool right)
{
    if (!right)
        abort();
}

static void count_release(struct mk_item *item, void *ctx)
{
    (void)item;
    require(ctx == &w);
    w.released++;
}

static size_t get_key_bytes(uint32_t key)
{
    return key % 3 ? sizeof(key) : sizeof(key) + key;
}

static const void *make_key(uint32_t key)
{
    static char bytes[sizeof(key) + KEYS];
    memset(bytes, 'k', sizeof(bytes));
    memcpy(bytes, &key, sizeof(key));
    return bytes;
}

static uint64_t make_hash(uint32_t key)
{
    return (uint64_t)(key % 7) << 58 | (uint64_t)(key % 5) << 40 | key % 16;
}

static size_t get_data_bytes(uint32_t key)
{
    return sizeof(struct content) + (key % 11 == 0 ? 7000 : key * 3);
}

static void check_item(const struct mk_item *item, uint32_t key, bool newest)
{
    const struct content *c = mk_item_data(item);
    require(item->key_bytes == get_key_bytes(key) && memcmp(mk_item_key(item), make_key(key), item->key_bytes) == 0);
    require(item->data_bytes == get_data_bytes(key) && c->key == key && (uintptr_t)c % 16 == 0);
    require(!newest || c->version == w.version[key]);
    for (size_t i = 0; i < item->data_bytes - sizeof(*c); i += 29)
        require(c->rest[i] == (unsigned char)(key + c->version));
}

static void put(uint32_t key, unsigned kind)
{
    struct mk_item *item =
        mk_store_draft(w.store, kind, make_hash(key), make_key(key), get_key_bytes(key), get_data_bytes(key));
    if (!item)
        return;
    struct content *c = mk_item_data(item);
    *c = (struct content){key, ++w.last};
    memset(c->rest, (int)(key + c->version), item->data_bytes - sizeof(*c));
    if (w.last % 9 == 0) {
        mk_store_discard(w.store, item);
        return;
    }
    w.puts++;
    w.version[key] = c->version;
    mk_store_put(w.store, item);
}

static struct mk_item *find(uint32_t key)
{
    struct mk_item *item = mk_store_find(w.store, make_hash(key), make_key(key), get_key_bytes(key));
    if (!item)
        return NULL;
    check_item(item, key, true);
    if (w.n_seen < SEEN_MAX)
        w.seen[w.n_seen++] = item;
    return item;
}

static void hold(uint32_t key)
{
    struct mk_item **place = &w.held[key % HELD];
    if (*place) {
        check_item(*place, ((const struct content *)mk_item_data(*place))->key, false);
        mk_item_put(*place);
    }
    struct mk_item *item = find(key);
    *place = item ? mk_item_get(item) : NULL;
}

static void remove_key(uint32_t key)
{
    struct mk_item *item = find(key);
    if (!item)
        return;
    require(mk_store_remove(w.store, item));
    require(!find(key));
}

static bool check_and_remove(struct mk_item *item, void *ctx)
{
    uint32_t key = ((const struct content *)mk_item_data(item))->key;
    check_item(item, key, true);
    return key % 16 == *(uint32_t *)ctx % 16;
}

static void end_turn(void)
{
    for (unsigned i = 0; i < w.n_seen; i++)
        check_item(w.seen[i], ((const struct content *)mk_item_data(w.seen[i]))->key, false);
    w.n_seen = 0;
    mk__epoch_idle(&w.loop.epoch);
    mk_store_reclaim(w.store);
    mk__epoch_enter(&w.loop.epoch);
}

static void check_figures(void)
{
    uint64_t items = 0, bytes = 0;
    for (unsigned kind = 0; kind < 2; kind++) {
        struct mk_store_stats stats;
        mk_store_get_stats(w.store, kind, &stats);
        items += stats.items;
        bytes += stats.bytes;
    }
    require(items + w.released <= w.puts);
    require(bytes + w.store->slabs.free_bytes <= w.store->slabs.map_bytes);
    require(mk_store_bytes(w.store) <= BYTES_MAX);
}

static void change(unsigned operation, uint32_t key)
{
    switch (operation % 16) {
    case 0:
        remove_key(key);
        break;
    case 1:
        hold(key);
        break;
    case 2:
        end_turn();
        break;
    case 3:
        mk_store_evict(w.store, key % 2, key / 2);
        break;
    case 4:
        mk_store_each(w.store, key / 16 % 2, check_and_remove, &key);
        break;
    case 5:
        mk_store_set_items_max(w.store, 1, key % 32 + 1);
        break;
    case 6:
        mk_store_admits(w.store, key % 2, make_hash(key));
        break;
    case 7:
    case 8:
    case 9:
        find(key);
        break;
    default:
        put(key, operation % 16 > 12);
        break;
    }
}

static void open_fixture(void)
{
    static const struct mk_store_kind kinds[] = {{.name = "a", .release = count_release},
                                                 {.name = "b", .items_max = 16, .share = 10, .release = count_release}};
    struct mk_store_conf conf = {.bytes_max = BYTES_MAX, .kinds = kinds, .n_kinds = 2, .ctx = &w};
    memset(&w, 0, sizeof(w));
    require(mk__loop_open(&w.loop, &mk__poller_epoll, &mk__clock_system, NULL) == 0);
    require(mk_store_new(&conf, &w.store) == 0);
    mk_epoch_join(&w.loop);
}

static void close_fixture(void)
{
    end_turn();
    for (unsigned i = 0; i < HELD; i++)
        if (w.held[i])
            mk_item_put(w.held[i]);
    mk__loop_close(&w.loop);
    mk_store_free(w.store);
    require(w.puts == w.released);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    open_fixture();
    for (size_t i = 0; i + 1 < size; i += 2) {
        change(data[i], data[i + 1]);
        check_figures();
    }
    close_fixture();
    return 0;
}

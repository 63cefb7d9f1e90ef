// SPDX-License-Identifier: Apache-2.0
/*
 * A store under threads: loops that search it, hold items and change it, a thread without a loop that changes limits
 * and removes items. What an item says must be of its key as long as it is valid; TSan and ASan look on.
 */
#include "testing.h"

#include "store_kit.h"

#include <pthread.h>
#include <sched.h>

enum {
    WORKERS = 3,
    KEYS = 3000,
    HELD = 16,
    TURNS = MK_HAS_ASAN || MK_HAS_MSAN ? 1500 : 3000,
    STEPS = 24, /* of a turn */
    BYTES_MAX = 1 << 20,
};

struct worker {
    struct mk_loop loop;
    struct mk_task task;
    pthread_t thread;
    uint64_t random;
    unsigned turns, hits;
    struct mk_item *seen[STEPS], *held[HELD];
};

static struct mk_store *store;
static _Atomic unsigned running;
static _Atomic uint64_t live; /* items that were put and have not been released */

static void count_live(struct mk_item *item, void *ctx)
{
    (void)item;
    (void)ctx;
    atomic_fetch_sub(&live, 1);
}

static uint64_t next_random(struct worker *w)
{
    w->random ^= w->random << 13;
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    return w->random;
}

/* Some keys are asked for more often; hashes of some collide. */
static uint32_t choose_key(struct worker *w)
{
    uint64_t n = next_random(w);
    return (uint32_t)(n % 4 ? n / 4 % (KEYS / 10) : n / 4 % KEYS);
}

static uint64_t hash_key(uint32_t key)
{
    return key % 50 ? mk_store_hash(store, &key, sizeof(key)) : 42;
}

static size_t choose_bytes(uint32_t key)
{
    return key % 7 == 0 ? 8000 + key : key % 3 ? key % 200 : 1000 + key % 900;
}

/* Fails unless all data of the item are of its key. */
static void check_item(const struct mk_item *item)
{
    uint32_t key;
    assert_int_equal(item->key_bytes, sizeof(key));
    memcpy(&key, mk_item_key(item), sizeof(key));
    const unsigned char *data = mk_item_data(item);
    assert_int_equal(item->data_bytes, choose_bytes(key));
    for (uint32_t i = 0; i < item->data_bytes; i += 61)
        assert_int_equal(data[i], (unsigned char)key);
}

static unsigned kind_of(uint32_t key)
{
    return key % 5 == 0 ? NAME : BODY;
}

static void add_key(struct worker *w, uint32_t key, uint64_t hash)
{
    struct mk_item *item = mk_store_draft(store, kind_of(key), hash, &key, sizeof(key), choose_bytes(key));
    if (!item)
        return;
    memset(mk_item_data(item), (int)key, item->data_bytes);
    if (next_random(w) % 16 == 0) {
        mk_store_discard(store, item);
        return;
    }
    atomic_fetch_add(&live, 1);
    mk_store_put(store, item);
    check_item(item);
}

static void change_held(struct worker *w, struct mk_item *item)
{
    struct mk_item **place = &w->held[next_random(w) % HELD];
    if (*place) {
        check_item(*place);
        mk_item_put(*place);
    }
    *place = item ? mk_item_get(item) : NULL;
}

static struct mk_item *do_step(struct worker *w)
{
    uint32_t key = choose_key(w);
    uint64_t hash = hash_key(key);
    struct mk_item *item = mk_store_find(store, hash, &key, sizeof(key));
    if (!item) {
        if (mk_store_admits(store, kind_of(key), hash))
            add_key(w, key, hash);
        return NULL;
    }
    w->hits++;
    check_item(item);
    switch (next_random(w) % 32) {
    case 0:
        mk_store_remove(store, item);
        break;
    case 1:
        add_key(w, key, hash); /* in place of it */
        break;
    case 2:
    case 3:
        change_held(w, item);
        break;
    case 4:
        change_held(w, NULL);
        break;
    default:
        break;
    }
    return item;
}

static void do_turn(struct mk_task *task)
{
    struct worker *w = MK_CONTAINER_OF(task, struct worker, task);
    for (unsigned i = 0; i < STEPS; i++)
        w->seen[i] = do_step(w);
    for (unsigned i = 0; i < STEPS; i++)
        if (w->seen[i])
            check_item(w->seen[i]); /* valid until the turn ends, whatever was done meanwhile */
    if (next_random(w) % 64 == 0)
        mk_store_evict(store, BODY, 20);
    if (++w->turns < TURNS)
        mk_task_schedule(&w->loop, task);
}

static void *run_worker(void *ctx)
{
    struct worker *w = ctx;
    mk_epoch_join(&w->loop);
    mk_task_init(&w->task, do_turn);
    mk_task_schedule(&w->loop, &w->task);
    while (w->turns < TURNS)
        assert_int_equal(mk__loop_turn(&w->loop), 0);
    for (unsigned i = 0; i < HELD; i++)
        if (w->held[i])
            mk_item_put(w->held[i]);
    mk_epoch_leave(&w->loop);
    running--;
    return NULL;
}

static bool check_and_remove_some(struct mk_item *item, void *ctx)
{
    (void)ctx;
    check_item(item);
    return item->hash % 13 == 0;
}

/* What an administrator's thread does, until the workers have ended. */
static void change_limits(void)
{
    for (unsigned i = 0; running; i++) {
        mk_store_set_limit(store, i % 2 ? BYTES_MAX : BYTES_MAX * 2 / 3);
        mk_store_set_items_max(store, NAME, 20 + i % 3 * 40);
        mk_store_each(store, i % KINDS, check_and_remove_some, NULL);
        mk_store_reclaim(store);
        sched_yield();
    }
}

static struct worker workers[WORKERS];

TEST(threads)
{
    const struct mk_store_kind kinds[KINDS] = {
        [BODY] = {.name = "bodies", .release = count_live},
        [NAME] = {.name = "names", .items_max = 100, .share = 10, .release = count_live},
    };
    struct mk_store_conf conf = {.bytes_max = BYTES_MAX, .kinds = kinds, .n_kinds = KINDS};
    assert_int_equal(mk_store_new(&conf, &store), 0);
    running = WORKERS;
    for (unsigned i = 0; i < WORKERS; i++) {
        workers[i].random = 88172645463325252 + i * 977;
        assert_int_equal(mk__loop_open(&workers[i].loop, &mk__poller_epoll, &mk__clock_system, NULL), 0);
        assert_int_equal(pthread_create(&workers[i].thread, NULL, run_worker, &workers[i]), 0);
    }
    change_limits();
    unsigned hits = 0;
    for (unsigned i = 0; i < WORKERS; i++) {
        pthread_join(workers[i].thread, NULL);
        mk__loop_close(&workers[i].loop);
        hits += workers[i].hits;
    }
    mk_store_set_limit(store, BYTES_MAX);
    mk_store_reclaim(store);
    check_store(store);
    struct mk_store_stats bodies = stats_of(store, BODY), names = stats_of(store, NAME);
    assert_int_equal(live, bodies.items + names.items);
    assert_true(hits > 1000 && bodies.evicted > 100 && bodies.items > 50);
    assert_int_equal(store->pending_bytes, 0);
    mk_store_free(store);
    assert_int_equal(live, 0);
}

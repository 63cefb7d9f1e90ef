// SPDX-License-Identifier: Apache-2.0
/*
 * What a store costs: nanoseconds for the hash of a key and for lookups of items that are in the caches of the CPU and
 * of items that are not, for a put into a full store, and for a turn that takes part in epochs; and bytes per item. The
 * times are those of the fastest of many short rounds.
 */
#include <monkey/kit/store.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "loop/loop.h"

enum { KEY_BYTES = 48, KEYS = 1 << 16, ROUNDS = 40, PUTS = 20000, TURNS = 20000, BODY_BYTES = 4600 };

static struct mk_store *store;
static uint64_t random_state = 88172645463325252;

static uint64_t get_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    return random_state ^= random_state << 17;
}

static double read_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void make_key(char key[KEY_BYTES + 1], uint64_t n)
{
    snprintf(key, KEY_BYTES + 1, "0123456789abcdef-assets/images/file-%012llu", (unsigned long long)n);
}

static void put(uint64_t n, size_t bytes)
{
    char key[KEY_BYTES + 1];
    make_key(key, n);
    struct mk_item *item = mk_store_draft(store, 0, mk_store_hash(store, key, KEY_BYTES), key, KEY_BYTES, bytes);
    if (!item)
        return;
    memset(mk_item_data(item), 1, bytes);
    mk_store_put(store, item);
}

static void open_store(uint64_t bytes_max)
{
    static const struct mk_store_kind kind = {.name = "bodies"};
    struct mk_store_conf conf = {.bytes_max = bytes_max, .kinds = &kind, .n_kinds = 1};
    if (mk_store_new(&conf, &store) < 0)
        abort();
}

/* Returns the time of one call of the fastest round. */
static double measure(void (*round)(void), unsigned calls)
{
    double best = 1e18;
    for (unsigned i = 0; i < ROUNDS; i++) {
        double begin = read_clock_ns();
        round();
        double ns = read_clock_ns() - begin;
        best = ns < best ? ns : best;
    }
    return best / calls;
}

static char keys[KEYS][KEY_BYTES + 1];
static unsigned long sum;

static void hash_keys(void)
{
    for (unsigned i = 0; i < KEYS; i++)
        sum += mk_store_hash(store, keys[i], KEY_BYTES);
}

static void find_keys(void)
{
    for (unsigned i = 0; i < KEYS; i++)
        sum += mk_store_find(store, mk_store_hash(store, keys[i], KEY_BYTES), keys[i], KEY_BYTES) != NULL;
}

/* Looks up keys in a random order. */
static void measure_lookups(uint64_t items, size_t bytes)
{
    open_store(MK_STORE_BYTES_MIN + items * (bytes + 400));
    for (uint64_t n = 0; n < items; n++)
        put(n, bytes);
    for (unsigned i = 0; i < KEYS; i++)
        make_key(keys[i], get_random() % items);
    double hash = measure(hash_keys, KEYS), both = measure(find_keys, KEYS);
    printf("%7llu items of %4zu bytes: hash %.1f ns, lookup %.1f ns more; %.1f bytes more for each\n",
           (unsigned long long)items, bytes, hash, both - hash,
           (double)mk_store_bytes(store) / (double)items - (double)bytes);
    mk_store_free(store);
}

static void put_files(void)
{
    static uint64_t n;
    for (unsigned i = 0; i < PUTS; i++)
        put(n++, BODY_BYTES);
}

static struct mk_loop loop;
static struct mk_task task;

static void run_task(struct mk_task *t)
{
    (void)t;
}

static void run_turns(void)
{
    for (unsigned i = 0; i < TURNS; i++) {
        mk_task_schedule(&loop, &task);
        mk__loop_turn(&loop);
    }
}

static void measure_turns(void)
{
    if (mk__loop_open(&loop, &mk__poller_epoll, &mk__clock_system, NULL) < 0)
        abort();
    mk_task_init(&task, run_task);
    double without = measure(run_turns, TURNS);
    mk_epoch_join(&loop);
    double with = measure(run_turns, TURNS);
    printf("turn without epochs: %.1f ns, with epochs: %.1f ns\n", without, with);
    mk__loop_close(&loop);
}

int main(void)
{
    measure_lookups(1000, 64);
    measure_lookups(10000, BODY_BYTES);
    measure_lookups(100000, 64);
    open_store(32 << 20);
    put_files();
    printf("put of %d bytes into a full store of 32 MB: %.0f ns\n", BODY_BYTES, measure(put_files, PUTS));
    mk_store_free(store);
    measure_turns();
    return sum == 0;
}

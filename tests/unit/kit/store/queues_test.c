// SPDX-License-Identifier: Apache-2.0
/* The order in which items are evicted: against a simulation of S3-FIFO, and against LRU by what is found. */
#include "testing.h"

#include <math.h>
#include <stdlib.h>

#include "store_kit.h"

static uint64_t next_random(void)
{
    static uint64_t random = 88172645463325252;
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    return random;
}

/* ── S3-FIFO, written down once more ── */

enum { KEYS = 120, RUNS = 60, STEPS = 900 };

struct list {
    unsigned n, key[KEYS];
};

static struct simulation {
    struct list small, main;
    unsigned uses[KEYS];
    bool in[KEYS], ghost[KEYS];
} sim;

static void append(struct list *l, unsigned key)
{
    assert_true(l->n < KEYS);
    l->key[l->n++] = key;
}

static unsigned take_at(struct list *l, unsigned at)
{
    unsigned key = l->key[at];
    memmove(&l->key[at], &l->key[at + 1], (--l->n - at) * sizeof(key));
    return key;
}

static void simulate_put(unsigned key)
{
    append(sim.ghost[key] ? &sim.main : &sim.small, key);
    sim.ghost[key] = false;
    sim.in[key] = true;
    sim.uses[key] = 0;
}

static unsigned simulate_evict(void)
{
    for (;;) {
        bool small = !sim.main.n || sim.small.n * 100 > (sim.small.n + sim.main.n) * 10;
        unsigned key = take_at(small ? &sim.small : &sim.main, 0);
        if (!sim.uses[key]) {
            sim.ghost[key] |= small;
            sim.in[key] = false;
            return key;
        }
        sim.uses[key] = small ? 0 : sim.uses[key] - 1;
        append(&sim.main, key);
    }
}

static void simulate_remove(unsigned key)
{
    struct list *lists[] = {&sim.small, &sim.main};
    for (unsigned i = 0; i < COUNT(lists); i++)
        for (unsigned n = 0; n < lists[i]->n; n++)
            if (lists[i]->key[n] == key)
                take_at(lists[i], n);
    sim.in[key] = false;
}

/* All in one part, so that the order is that of one queue. */
static uint64_t hash_in_part(unsigned key)
{
    return (key * 0x9e3779b97f4a7c15) >> 6;
}

static void step(struct mk_store *store)
{
    unsigned key = (unsigned)(next_random() % 3 ? next_random() % (KEYS / 4) : next_random() % KEYS);
    struct mk_item *item = mk_store_find(store, hash_in_part(key), &key, sizeof(key));
    assert_int_equal(item != NULL, sim.in[key]);
    if (!item) {
        mk_store_put(store, mk_store_draft(store, BODY, hash_in_part(key), &key, sizeof(key), 16));
        simulate_put(key);
    } else if (next_random() % 40 == 0) {
        mk_store_remove(store, item);
        simulate_remove(key);
    } else if (sim.uses[key] < 3) {
        sim.uses[key]++;
    }
    if (sim.small.n + sim.main.n > KEYS / 3) {
        unsigned evicted = simulate_evict();
        assert_int_equal(mk_store_evict(store, BODY, 1), 1);
        assert_null(mk_store_find(store, hash_in_part(evicted), &evicted, sizeof(evicted)));
    }
}

TEST(order)
{
    uint64_t evicted = 0;
    for (unsigned run = 0; run < RUNS; run++) {
        struct mk_store *store = open_store(1 << 20);
        memset(&sim, 0, sizeof(sim));
        for (unsigned i = 0; i < STEPS; i++)
            step(store);
        evicted += stats_of(store, BODY).evicted;
        check_store(store);
        mk_store_free(store);
    }
    assert_true(evicted > RUNS * 100);
}

/* However many items were asked for, an eviction ends soon. */
TEST(evictions_are_bounded)
{
    enum { N = 3000 };
    struct mk_store *store = open_store(4 << 20);
    for (unsigned i = 0; i < N; i++)
        put(store, BODY, nth("k", i), 100);
    for (unsigned i = 0; i < N; i++)
        find(store, nth("k", i));
    assert_int_equal(mk_store_evict(store, BODY, 1), 1);
    unsigned moved = 0;
    for (unsigned i = 0; i < N; i++) {
        const char *key = nth("k", i);
        struct mk_item *item = mk_store_find(store, hash_of(store, key), key, strlen(key));
        moved += item && item->state == MK__ITEM_MAIN;
    }
    assert_int_equal(moved, 128);
    mk_store_free(store);
}

/* ── what is found ── */

enum { OBJECTS = 20000, REQUESTS = 200000, CRAWLED = REQUESTS / 4 };

static double *sums; /* of the weights of objects */

static void make_zipf(double exponent)
{
    double sum = 0;
    sums = test_malloc(OBJECTS * sizeof(*sums));
    for (unsigned i = 0; i < OBJECTS; i++)
        sums[i] = sum += 1 / pow(i + 1, exponent);
}

static unsigned choose_object(void)
{
    double at = (double)(next_random() >> 11) / 9007199254740992.0 * sums[OBJECTS - 1];
    unsigned low = 0, high = OBJECTS - 1;
    while (low < high) {
        unsigned middle = (low + high) / 2;
        if (sums[middle] < at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Every fourth request is a crawler's, for an object that is not asked for again. */
static unsigned *make_trace(void)
{
    unsigned *trace = test_malloc(REQUESTS * sizeof(*trace));
    for (unsigned i = 0; i < REQUESTS; i++)
        trace[i] = i % 4 == 0 ? OBJECTS + i / 4 : choose_object();
    return trace;
}

static unsigned count_hits(struct mk_store *store, const unsigned *trace, bool admits)
{
    unsigned hits = 0;
    for (unsigned i = 0; i < REQUESTS; i++) {
        uint64_t hash = mk_store_hash(store, &trace[i], sizeof(trace[i]));
        if (mk_store_find(store, hash, &trace[i], sizeof(trace[i]))) {
            hits++;
            continue;
        }
        if (admits && !mk_store_admits(store, BODY, hash))
            continue;
        struct mk_item *item = mk_store_draft(store, BODY, hash, &trace[i], sizeof(trace[i]), 900);
        assert_non_null(item);
        mk_store_put(store, item);
    }
    return hits;
}

/* Hits of a cache of `size` objects that forgets the one that was not used for the longest time. */
static unsigned count_lru_hits(const unsigned *trace, uint64_t size)
{
    enum { ALL = OBJECTS + CRAWLED + 1 };
    unsigned *newer = test_calloc(ALL, sizeof(*newer)), *older = test_calloc(ALL, sizeof(*older)), hits = 0;
    bool *in = test_calloc(ALL, sizeof(*in));
    uint64_t n = 0; /* the last place of the lists is their head */
    newer[ALL - 1] = older[ALL - 1] = ALL - 1;
    for (unsigned i = 0; i < REQUESTS; i++) {
        unsigned o = trace[i];
        hits += in[o];
        n += !in[o];
        if (in[o])
            newer[older[o]] = newer[o], older[newer[o]] = older[o];
        in[o] = true;
        older[o] = older[ALL - 1], newer[o] = ALL - 1;
        newer[older[o]] = older[newer[o]] = o;
        if (n <= size)
            continue;
        unsigned oldest = newer[ALL - 1];
        newer[ALL - 1] = newer[oldest], older[newer[oldest]] = ALL - 1;
        in[oldest] = false;
        n--;
    }
    test_free(newer);
    test_free(older);
    test_free(in);
    return hits;
}

static void check_hits(double exponent, bool admits)
{
    struct mk_store *store = open_store(2 << 20);
    make_zipf(exponent);
    unsigned *trace = make_trace();
    unsigned hits = count_hits(store, trace, admits);
    unsigned lru = count_lru_hits(trace, stats_of(store, BODY).items);
    print_message("exponent %.1f, %s: %.1f %% found, LRU with as many items %.1f %%\n", exponent,
                  admits ? "admitted at the second request" : "all admitted", 100.0 * hits / (REQUESTS - CRAWLED),
                  100.0 * lru / (REQUESTS - CRAWLED));
    assert_true(hits > lru + REQUESTS / 50);
    check_store(store);
    mk_store_free(store);
    test_free(sums);
    test_free(trace);
}

TEST(hits)
{
    check_hits(0.9, false);
    check_hits(0.9, true);
    check_hits(1.1, true);
}

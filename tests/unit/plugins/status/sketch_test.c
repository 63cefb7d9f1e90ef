// SPDX-License-Identifier: Apache-2.0
/*
 * The busiest and the slowest paths: what is exact, the bounds of what is not, minutes, several threads.
 */
#include "testing.h"

#include "plugins/status/state.h"

#include <stdio.h>
#include <stdlib.h>

enum { NOW = 1000 };

static struct sketch sketch, other;
static struct sketch_lists lists;

static void add(struct sketch *s, uint64_t minute, const char *path, unsigned n, uint64_t us)
{
    while (n--)
        sketch_add(s, minute, mk_str_c(path), us);
}

static void merge(uint64_t minute)
{
    struct sketch *all[] = {&sketch, NULL, &other};
    assert_int_equal(sketch_merge(all, COUNT(all), minute, &lists), 0);
}

static int clear(void **unused)
{
    (void)unused;
    memset(&sketch, 0, sizeof(sketch));
    memset(&other, 0, sizeof(other));
    return 0;
}

static void check_row(const struct sketch_path *p, const char *path, uint64_t requests, uint64_t excess,
                      uint64_t max_us)
{
    assert_str_equal(mk_str(p->path, p->len), path);
    assert_int_equal(p->requests, requests);
    assert_int_equal(p->excess, excess);
    assert_int_equal(p->max_us, max_us);
}

TEST(exact, clear)
{
    add(&sketch, NOW, "/a", 3, 10);
    add(&sketch, NOW, "/b", 5, 20);
    add(&sketch, NOW, "/slow", 1, 9000);
    merge(NOW);
    assert_int_equal(lists.n_busiest, 3);
    check_row(&lists.busiest[0], "/b", 5, 0, 20);
    check_row(&lists.busiest[1], "/a", 3, 0, 10);
    check_row(&lists.busiest[2], "/slow", 1, 0, 9000);
    assert_int_equal(lists.busiest[0].total_us, 100);
    assert_int_equal(lists.n_slowest, 3);
    check_row(&lists.slowest[0], "/slow", 1, 0, 9000);
    check_row(&lists.slowest[1], "/b", 5, 0, 20);
}

TEST(threads_and_minutes, clear)
{
    add(&sketch, NOW - 4, "/a", 2, 7);
    add(&sketch, NOW, "/a", 3, 5);
    add(&other, NOW - 1, "/a", 4, 6);
    add(&other, NOW - 1, "/b", 8, 1);
    merge(NOW);
    check_row(&lists.busiest[0], "/a", 9, 0, 7);
    assert_int_equal(lists.busiest[0].total_us, 14 + 15 + 24);
    check_row(&lists.busiest[1], "/b", 8, 0, 1);
    merge(NOW + 1); /* the oldest minute is over */
    check_row(&lists.busiest[0], "/b", 8, 0, 1);
    check_row(&lists.busiest[1], "/a", 7, 0, 6);
    merge(NOW + 5);
    assert_int_equal(lists.n_busiest + lists.n_slowest, 0);
    add(&sketch, NOW + 1, "/a", 1, 1); /* takes the place of the oldest minute */
    merge(NOW + 1);
    check_row(&lists.busiest[1], "/a", 3 + 4 + 1, 0, 6);
}

TEST(clock_goes_back, clear)
{
    add(&sketch, NOW, "/late", 2, 1);
    merge(NOW - 1);
    assert_int_equal(lists.n_busiest, 0);
}

/* What SpaceSaving promises, for a stream in which a few paths are frequent. */
TEST(bounds, clear)
{
    enum { REQUESTS = 100000, PATHS = 5000, FREQUENT = 10 };
    static unsigned counts[PATHS];
    char path[32];
    memset(counts, 0, sizeof(counts));
    srand(1);
    for (int i = 0; i < REQUESTS; i++) {
        int n = rand() % 100 < 40 ? rand() % FREQUENT : rand() % PATHS;
        counts[n]++;
        snprintf(path, sizeof(path), "/%d", n);
        sketch_add(&sketch, NOW, mk_str_c(path), (uint64_t)n);
    }
    merge(NOW);
    assert_int_equal(lists.n_busiest, SKETCH_TOP);
    for (unsigned n = 0; n < FREQUENT; n++) {
        snprintf(path, sizeof(path), "/%u", n);
        unsigned i = 0;
        while (i < SKETCH_TOP && !mk_str_eq(mk_str(lists.busiest[i].path, lists.busiest[i].len), mk_str_c(path)))
            i++;
        assert_true(counts[n] > REQUESTS / SKETCH_BUSIEST && i < SKETCH_TOP);
        assert_true(lists.busiest[i].requests >= counts[n]);
        assert_true(lists.busiest[i].requests - lists.busiest[i].excess <= counts[n]);
    }
    /* the slowest are exact */
    for (unsigned i = 0; i < SKETCH_SLOWEST; i++)
        assert_int_equal(lists.slowest[i].max_us, PATHS - 1 - i);
}

TEST(cut, clear)
{
    char bytes[300];
    memset(bytes, 'x', sizeof(bytes));
    char *path = mk_test_guarded(bytes, sizeof(bytes));
    sketch_add(&sketch, NOW, mk_str(path, 300), 1);
    path[250] = 'y'; /* behind the cut */
    sketch_add(&sketch, NOW, mk_str(path, 300), 1);
    sketch_add(&sketch, NOW, mk_str(path, 200), 1);
    sketch_add(&sketch, NOW, mk_str(path, 199), 1);
    merge(NOW);
    assert_int_equal(lists.n_busiest, 2);
    assert_int_equal(lists.busiest[0].len, SKETCH_PATH_BYTES);
    assert_int_equal(lists.busiest[0].requests, 3);
    mk_test_unguard(path, 300);
}

static int run_merge(void *ctx)
{
    struct sketch *all[] = {&sketch};
    (void)ctx;
    return sketch_merge(all, 1, NOW, &lists);
}

TEST(no_memory, clear)
{
    add(&sketch, NOW, "/a", 1, 1);
    assert_int_equal(mk_test_failing_allocs(run_merge, NULL), 1);
    assert_int_equal(sketch_merge(NULL, 0, NOW, &lists), 0);
    assert_int_equal(lists.n_busiest, 0);
}

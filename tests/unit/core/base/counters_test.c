// SPDX-License-Identifier: Apache-2.0
/* Counters: what they sum up over threads and processes, their names, and their bounds. */
#include "counters_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct mk_counter_info hits = {"cache", "hits", "answers from the cache", MK_COUNTER_SUM};
static const struct mk_counter_info open_info = {NULL, "open", "what is open", MK_COUNTER_LEVEL};
static const struct mk_counter_info times = {NULL, "times", "how long it takes", MK_COUNTER_HISTOGRAM};

static const struct mk_counter *open_labelled(const struct mk_counter_info *info, const char *value)
{
    return mk_counter_open(info, &(struct mk_counter_label){"host", mk_str_c(value)}, 1);
}

static const struct mk_counter *hold_labelled(const struct mk_counter_info *info, const char *value)
{
    return mk_counter_hold(info, &(struct mk_counter_label){"host", mk_str_c(value)}, 1);
}

/* ── what readers see ── */

struct listing {
    char text[4096];
    size_t len;
    unsigned n;
};

static int list_one(const struct mk_counter_value *v, void *ctx)
{
    struct listing *l = ctx;
    l->n++;
    if (l->len < sizeof(l->text) - 400)
        l->len +=
            (size_t)snprintf(l->text + l->len, sizeof(l->text) - l->len, "%.*s/%.*s{%.*s} %lld\n",
                             MK_STR_ARG(v->plugin), MK_STR_ARG(v->name), MK_STR_ARG(v->labels), (long long)v->value);
    return 0;
}

static void assert_listing(const char *expected)
{
    struct listing l = {.text = ""};
    assert_int_equal(mk_counters_each(list_one, &l), 0);
    assert_string_equal(l.text, expected);
}

TEST(families_are_listed_together, mk_test_counters_open, mk_test_counters_close)
{
    mk__cell *cells = mk__counters_memory_claim();
    mk__counters_add(cells, open_labelled(&hits, "a"), 2);
    mk__counters_add(cells, mk_counter_open(&open_info, NULL, 0), -3);
    mk__counters_add(cells, open_labelled(&hits, "b"), 5);
    assert_listing("cache/hits{host=\"a\"} 2\n"
                   "cache/hits{host=\"b\"} 5\n"
                   "/open{} -3\n");
    mk__counters_memory_give_back(cells);
}

TEST(a_table, mk_test_counters_open, mk_test_counters_close)
{
    static const struct mk_counter_row rows[] = {{&hits, {0}},
                                                 {&hits, {"host", "a"}},
                                                 {&open_info, {"kind", "b", "result", "c", "dry_run", "no"}}};
    const struct mk_counter *opened[3] = {NULL}, *before[3];
    mk_counters_open(rows, 3, opened);
    memcpy(before, opened, sizeof(before));
    mk_counters_open(rows, 3, opened);
    assert_memory_equal(before, opened, sizeof(before));
    for (unsigned i = 0; i < 3; i++)
        mk__counters_add(NULL, opened[i], i + 1);
    assert_listing("cache/hits{} 1\n"
                   "cache/hits{host=\"a\"} 2\n"
                   "/open{kind=\"b\",result=\"c\",dry_run=\"no\"} 3\n");
}

TEST(the_same_name_is_the_same_counter, mk_test_counters_open, mk_test_counters_close)
{
    const struct mk_counter *a = open_labelled(&hits, "a");
    struct mk_counter_info later = hits;
    later.help = "other words";
    assert_ptr_equal(a, open_labelled(&later, "a"));
    assert_ptr_not_equal(a, open_labelled(&hits, "b"));
    assert_ptr_not_equal(a, mk_counter_open(&hits, NULL, 0));
}

TEST(label_values_are_escaped_and_cut, mk_test_counters_open, mk_test_counters_close)
{
    char text[300];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    open_labelled(&hits, "say \"a\\b\"\n\x01");
    open_labelled(&hits, text);
    struct listing l = {.text = ""};
    mk_counters_each(list_one, &l);
    assert_non_null(strstr(l.text, "{host=\"say \\\"a\\\\b\\\"\\n?\"} 0\n"));
    assert_null(strstr(l.text, text));
    text[MK_COUNTER_LABEL_MAX] = '\0';
    assert_non_null(strstr(l.text, text));
}

TEST(what_is_invalid_is_not_shown, mk_test_counters_open, mk_test_counters_close)
{
    struct mk_counter_info other_kind = hits, name = hits, plugin = hits, no_help = hits;
    other_kind.kind = MK_COUNTER_LEVEL;
    name.name = "Hits";
    plugin.plugin = "a-b";
    no_help.help = NULL;
    const struct mk_counter *good = mk_counter_open(&hits, NULL, 0);
    const struct mk_counter *bad[] = {mk_counter_open(&other_kind, NULL, 0),
                                      mk_counter_open(&name, NULL, 0),
                                      mk_counter_open(&plugin, NULL, 0),
                                      mk_counter_open(&no_help, NULL, 0),
                                      mk_counter_open(&hits, &(struct mk_counter_label){"9", MK_STR("x")}, 1),
                                      mk_counter_open(&hits, (struct mk_counter_label[7]){{"a", MK_STR("x")}}, 7)};
    for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_ptr_not_equal(bad[i], good);
        mk__counters_add(NULL, bad[i], 7);
        mk__counters_observe(NULL, bad[i], 1 << 30);
        uint64_t buckets[MK_COUNTER_BUCKETS] = {0};
        assert_int_equal(mk_counter_read(bad[i]), 0);
        assert_int_equal(mk_counter_read_histogram(bad[i], buckets), 0);
        assert_int_equal(buckets[0], 0);
    }
    assert_listing("cache/hits{} 0\n");
}

TEST(their_number_is_bounded, mk_test_counters_open, mk_test_counters_close)
{
    char value[16];
    for (unsigned i = 0; i < MK_COUNTERS_MAX + 10; i++) {
        snprintf(value, sizeof(value), "%u", i);
        mk__counters_add(NULL, open_labelled(&hits, value), 1);
    }
    struct listing l = {.text = ""};
    mk_counters_each(list_one, &l);
    assert_int_equal(l.n, MK_COUNTERS_MAX);
    assert_int_equal(mk_counter_read(open_labelled(&hits, "16383")), 1); /* it is still found */
}

/* A name for each configuration, of which each removes the former one: once all places are taken, hidden ones are. */
TEST(places_of_hidden_counters_are_used_again, mk_test_counters_open, mk_test_counters_close)
{
    char value[16];
    mk__cell *cells = mk__counters_memory_claim();
    const struct mk_counter *kept = hold_labelled(&hits, "kept");
    mk__counters_add(cells, kept, 7);
    for (unsigned i = 0; i < MK_COUNTERS_MAX + 2048; i++) {
        snprintf(value, sizeof(value), "%u", i); /* longer ones take the places of shorter ones */
        const struct mk_counter *counter = hold_labelled(&hits, value);
        assert_int_equal(mk_counter_read(counter), 0);
        mk__counters_add(cells, counter, 3);
        mk__counters_add(NULL, counter, 2);
        assert_int_equal(mk_counter_read(counter), 5);
        mk_counter_put(counter);
    }
    assert_listing("cache/hits{host=\"kept\"} 7\n");
    const struct mk_counter *last = hold_labelled(&hits, value);
    assert_int_equal(mk_counter_read(last), 5); /* again */
    mk_counter_put(last);
    mk_counter_put(kept);
    mk__counters_memory_give_back(cells);
}

/* ── counters of hosts that were removed ── */

static const struct mk_counter_info requests = {NULL, "requests", "requests by host", MK_COUNTER_SUM};

static const struct mk_counter *hold_host(const struct mk_counter_info *info, const char *host)
{
    struct mk_counter_label labels[] = {{"host", mk_str_c(host)}, {"status", MK_STR("2xx")}};
    return mk_counter_hold(info, labels, COUNT(labels));
}

struct sums {
    int64_t all, removed;
    uint64_t us;
    unsigned n;
};

static int add_sums(const struct mk_counter_value *v, void *ctx)
{
    struct sums *sums = ctx;
    char storage[MK_COUNTER_LABEL_VALUE_BYTES];
    sums->n++;
    sums->all += v->value;
    sums->us += v->sum_us;
    if (mk_str_eq(mk_counter_label_get(v->labels, MK_STR("host"), storage), MK_STR("(removed)")))
        sums->removed += v->value;
    return 0;
}

/* Many configurations, each with another host, of which each removes the former one. No count is lost. */
static void remove_hosts(const struct mk_counter_info *info, unsigned n)
{
    char name[32];
    struct sums sums = {.n = 0};
    mk__cell *cells = mk__counters_memory_claim();
    const struct mk_counter *kept = hold_host(info, "kept"), *last = NULL;
    for (unsigned i = 0; i < n; i++) {
        snprintf(name, sizeof(name), "h%u", i);
        const struct mk_counter *counter = hold_host(info, name);
        if (info->kind == MK_COUNTER_HISTOGRAM) {
            mk__counters_observe(cells, kept, 1000);
            mk__counters_observe(cells, counter, 1000);
        } else {
            assert_int_equal(mk_counter_read(counter), 0);
            mk__counters_add(cells, kept, 1);
            mk__counters_add(NULL, counter, 1);
        }
        if (last)
            mk__counters_put(last);
        last = counter;
        if (i % 1024 == 1023)
            mk__counters_retire_unused("host");
    }
    mk_counters_each(add_sums, &sums);
    assert_int_equal(sums.all, 2 * n);
    assert_int_equal(sums.us, info->kind == MK_COUNTER_HISTOGRAM ? 2000 * n : 0);
    assert_true(sums.removed > 0 && sums.removed < n);
    assert_true(sums.n <= MK_COUNTERS_MAX);
    mk__counters_put(last);
    mk__counters_put(kept);
    mk__counters_memory_give_back(cells);
}

TEST(places_of_removed_hosts_are_used_again, mk_test_counters_open, mk_test_counters_close)
{
    remove_hosts(&requests, MK_COUNTERS_MAX + 2048);
}

TEST(histograms_of_removed_hosts, mk_test_counters_open, mk_test_counters_close)
{
    remove_hosts(&times, MK__COUNTER_CELLS_MAX / MK__COUNTER_HISTOGRAM_CELLS + 200);
}

/* It comes back before its place is needed: with what it had counted. */
TEST(a_removed_host_that_comes_back, mk_test_counters_open, mk_test_counters_close)
{
    const struct mk_counter *counter = hold_host(&requests, "a");
    mk__counters_add(NULL, counter, 5);
    mk__counters_put(counter);
    mk__counters_retire_unused("host");
    assert_listing("/requests{host=\"a\",status=\"2xx\"} 5\n");
    assert_ptr_equal(hold_host(&requests, "a"), counter);
    assert_int_equal(mk_counter_read(counter), 5);
    mk__counters_put(counter);
}

/* What is hidden may be in use by another process, such as the former one of an upgrade. */
TEST(no_place_is_used_again_while_another_process_counts, mk_test_counters_open, mk_test_counters_close)
{
    char value[16];
    int ready[2], done[2];
    char byte = 0;
    assert_int_equal(pipe(ready) | pipe(done), 0);
    pid_t child = fork();
    if (child == 0) {
        mk__cell *cells = mk__counters_memory_claim();
        _exit(!cells || write(ready[1], &byte, 1) != 1 || read(done[0], &byte, 1) != 1);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    for (unsigned i = 0; i < MK_COUNTERS_MAX; i++) {
        snprintf(value, sizeof(value), "%05u", i);
        const struct mk_counter *counter = hold_labelled(&hits, value);
        mk__counters_add(NULL, counter, 1);
        mk_counter_put(counter);
    }
    mk__counters_add(NULL, open_labelled(&hits, "new"), 1);
    assert_listing("");
    assert_int_equal(write(done[1], &byte, 1), 1);
    assert_int_equal(waitpid(child, NULL, 0), child);
    mk__counters_add(NULL, open_labelled(&hits, "new"), 1);
    assert_listing("cache/hits{host=\"new\"} 1\n");
    for (unsigned i = 0; i < 2; i++) {
        close(ready[i]);
        close(done[i]);
    }
}

TEST(histograms_are_bounded_by_their_cells, mk_test_counters_open, mk_test_counters_close)
{
    char value[16];
    for (unsigned i = 0; i < 6000; i++) {
        snprintf(value, sizeof(value), "%u", i);
        mk__counters_observe(NULL, open_labelled(&times, value), UINT64_MAX / 2);
    }
    struct listing l = {.text = ""};
    mk_counters_each(list_one, &l);
    assert_in_range(l.n, 4900, 5000); /* 524,287 cells, 105 each */
}

/* ── buckets ── */

TEST(buckets)
{
    for (uint64_t us = 0; us < 1 << 20; us = us < 1000 ? us + 1 : us + us / 50) {
        unsigned bucket = mk_counter_bucket(us);
        assert_true(us < mk_counter_bucket_end_us(bucket));
        assert_true(bucket == 0 || us >= mk_counter_bucket_end_us(bucket - 1));
        assert_true(us < 8 || (double)mk_counter_bucket_end_us(bucket) <= 1.25 * (double)us + 1);
    }
    assert_int_equal(mk_counter_bucket(UINT64_MAX), MK_COUNTER_BUCKETS - 1);
    assert_int_equal(mk_counter_bucket_end_us(MK_COUNTER_BUCKETS - 1), UINT64_MAX);
    assert_true(mk_counter_bucket_end_us(MK_COUNTER_BUCKETS - 2) > 60000000); /* longer than any timeout */
}

TEST(quantiles)
{
    uint64_t buckets[MK_COUNTER_BUCKETS] = {0};
    assert_int_equal(mk_counter_quantile_us(buckets, 0.5), 0);
    for (unsigned us = 1; us <= 1000; us++)
        buckets[mk_counter_bucket(us)]++;
    assert_in_range(mk_counter_quantile_us(buckets, 0.5), 500, 640);
    assert_in_range(mk_counter_quantile_us(buckets, 0.99), 990, 1024);
    assert_int_equal(mk_counter_quantile_us(buckets, 1), 1024);
    buckets[MK_COUNTER_BUCKETS - 1] = 1000000;
    assert_int_equal(mk_counter_quantile_us(buckets, 0.99), mk_counter_bucket_end_us(MK_COUNTER_BUCKETS - 2));
}

static int check_histogram(const struct mk_counter_value *v, void *ctx)
{
    (void)ctx;
    assert_int_equal(v->kind, MK_COUNTER_HISTOGRAM);
    assert_int_equal(v->value, 3);
    assert_int_equal(v->sum_us, 1010);
    assert_int_equal(v->buckets[mk_counter_bucket(5)], 2);
    assert_int_equal(v->buckets[mk_counter_bucket(1000)], 1);
    return 42;
}

TEST(a_histogram_is_read, mk_test_counters_open, mk_test_counters_close)
{
    mk__cell *cells = mk__counters_memory_claim();
    const struct mk_counter *c = mk_counter_open(&times, NULL, 0);
    mk__counters_observe(cells, c, 5);
    mk__counters_observe(NULL, c, 5);
    mk__counters_observe(cells, c, 1000);
    assert_int_equal(mk_counters_each(check_histogram, NULL), 42);
    uint64_t buckets[MK_COUNTER_BUCKETS] = {[0] = 7};
    buckets[mk_counter_bucket(5)] = 10;
    assert_int_equal(mk_counter_read_histogram(c, buckets), 1010);
    assert_int_equal(buckets[0], 7);
    assert_int_equal(buckets[mk_counter_bucket(5)], 12); /* it adds */
    assert_int_equal(buckets[mk_counter_bucket(1000)], 1);
    mk__counters_memory_give_back(cells);
}

/* ── threads ── */

enum { THREADS = 4, ROUNDS = 20000 };

static void *count(void *ctx)
{
    mk__cell *cells = mk__counters_memory_claim();
    for (unsigned i = 0; i < ROUNDS; i++) {
        mk__counters_add(cells, ctx, 1);
        mk__counters_add(NULL, ctx, 1);
    }
    mk__counters_memory_give_back(cells);
    return NULL;
}

TEST(threads_count_exactly, mk_test_counters_open, mk_test_counters_close)
{
    const struct mk_counter *c = mk_counter_open(&hits, NULL, 0);
    pthread_t threads[THREADS];
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < THREADS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, count, (void *)(uintptr_t)c), 0);
        int64_t before = 0;
        for (unsigned i = 0; i < 1000; i++) {
            int64_t now = mk_counter_read(c);
            assert_true(now >= before);
            before = now;
        }
        for (unsigned i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
    }
    assert_int_equal(mk_counter_read(c), 3 * THREADS * ROUNDS * 2);
}

TEST(a_block_keeps_sums_and_clears_levels, mk_test_counters_open, mk_test_counters_close)
{
    const struct mk_counter *sum = mk_counter_open(&hits, NULL, 0), *level = mk_counter_open(&open_info, NULL, 0);
    mk__cell *first = mk__counters_memory_claim();
    mk__counters_add(first, sum, 3);
    mk__counters_add(first, level, 3);
    mk__counters_memory_give_back(first);
    mk__cell *second = mk__counters_memory_claim();
    assert_ptr_equal(first, second);
    mk__counters_add(second, sum, 4);
    assert_int_equal(mk_counter_read(sum), 7);
    assert_int_equal(mk_counter_read(level), 0);
    mk__counters_memory_give_back(second);
}

TEST(more_threads_than_blocks, mk_test_counters_open, mk_test_counters_close)
{
    static mk__cell *all[1100];
    unsigned n = 0;
    while (n < 1100 && (all[n] = mk__counters_memory_claim()))
        n++;
    assert_int_equal(n, 1023); /* one is of the threads without */
    const struct mk_counter *c = mk_counter_open(&hits, NULL, 0);
    mk__counters_add(NULL, c, 1);
    mk__counters_add(all[1000], c, 1);
    assert_int_equal(mk_counter_read(c), 2);
    while (n > 0)
        mk__counters_memory_give_back(all[--n]);
}

/* ── processes ── */

/* Counts in a process that ends without giving its blocks back. */
static void crash(int fd)
{
    int err = mk_counters_inherit(fd);
    if (err == 0)
        err = mk__counters_memory_open();
    if (err < 0)
        _exit(1);
    mk__cell *cells = mk__counters_memory_claim();
    mk__counters_add(cells, open_labelled(&hits, "a"), 10);
    mk__counters_add(cells, mk_counter_open(&open_info, NULL, 0), 5);
    mk__counters_add(NULL, mk_counter_open(&open_info, NULL, 0), 5);
    kill(getpid(), SIGKILL);
}

static void run_until_crash(int fd)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        crash(dup(fd));
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
}

TEST(the_next_process_continues)
{
    int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_true(fd >= 0);
    run_until_crash(fd);
    run_until_crash(fd);
    assert_int_equal(mk_counters_inherit(dup(fd)), 0);
    assert_int_equal(mk_counters_inherit(dup(fd)), -EBUSY);
    assert_int_equal(mk__counters_memory_open(), 0);
    assert_listing("cache/hits{host=\"a\"} 20\n"
                   "/open{} 0\n");
    assert_true(mk_counters_fd() >= 0);
    mk__counters_memory_close();
    assert_int_equal(mk_counters_fd(), -ENOENT);
    close(fd);
}

/* It ended while this process was running: nothing else clears what it held. */
/* A value is not a sum of what processes hold: it is the last one that was set, and outlives its process. */
TEST(a_value_of_two_processes, mk_test_counters_open, mk_test_counters_close)
{
    static const struct mk_counter_info date = {"tls", "end", "when it ends", MK_COUNTER_VALUE};
    const struct mk_counter *counter = mk_counter_open(&date, NULL, 0);
    mk_counter_set(counter, 5000000000);
    assert_int_equal(mk_counter_read(counter), 5000000000);
    mk_counter_set(counter, 7);
    pid_t child = fork();
    if (child == 0) {
        mk__counters_memory_free_dead(false);
        mk_counter_set(counter, 4000000000);
        mk_counter_set(counter, 4000000001);
        _exit(mk_counter_read(counter) != 4000000001);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    mk__counters_memory_free_dead(false);
    assert_int_equal(mk_counter_read(counter), 4000000001);
    assert_listing("tls/end{} 4000000001\n");
    mk_counter_set(counter, 3);
    assert_int_equal(mk_counter_read(counter), 3);
}

TEST(a_crash_beside_this_process, mk_test_counters_open, mk_test_counters_close)
{
    pid_t pid = fork();
    if (pid == 0) {
        mk__cell *own = mk__counters_memory_claim();
        mk__counters_add(own, open_labelled(&hits, "a"), 10);
        mk__counters_add(own, mk_counter_open(&open_info, NULL, 0), 5);
        kill(getpid(), SIGKILL);
    }
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_listing("cache/hits{host=\"a\"} 10\n"
                   "/open{} 0\n");
    mk__cell *cells = mk__counters_memory_claim();
    mk__counters_add(cells, mk_counter_open(&open_info, NULL, 0), 2);
    assert_listing("cache/hits{host=\"a\"} 10\n"
                   "/open{} 2\n");
    mk__counters_memory_give_back(cells);
}

static const struct mk_counter *open_numbered(const struct mk_counter_info *info, unsigned i)
{
    char value[16];
    snprintf(value, sizeof(value), "%u", i);
    return open_labelled(info, value);
}

/* Above a number an index finds them, which has to learn what another process has added. */
TEST(many_counters_of_two_processes, mk_test_counters_open, mk_test_counters_close)
{
    enum { OURS = 3000, ALL = OURS + 500 };
    static const struct mk_counter *opened[2][ALL];
    const struct mk_counter_info *infos[] = {&hits, &open_info};
    for (unsigned i = 0; i < OURS; i++)
        for (unsigned f = 0; f < 2; f++)
            opened[f][i] = open_numbered(infos[f], i);
    pid_t pid = fork();
    if (pid == 0) {
        for (unsigned i = OURS; i < ALL; i++)
            mk__counters_add(NULL, open_numbered(&hits, i), 1);
        _exit(open_numbered(&hits, 7) == opened[0][7] ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    for (unsigned i = OURS; i < ALL; i++) {
        assert_int_equal(mk_counter_read(opened[0][i] = open_numbered(&hits, i)), 1);
        opened[1][i] = open_numbered(&open_info, i);
    }
    for (unsigned i = 0; i < ALL; i++)
        for (unsigned f = 0; f < 2; f++)
            assert_ptr_equal(open_numbered(infos[f], i), opened[f][i]);
    struct listing l = {.text = ""};
    assert_int_equal(mk_counters_each(list_one, &l), 0);
    assert_int_equal(l.n, 2 * ALL);
    mk__counters_memory_close();
    mk_test_counters_open(NULL);
    mk__counters_add(NULL, open_numbered(&hits, 7), 2);
    assert_listing("cache/hits{host=\"7\"} 2\n"); /* nothing is left of what the first memory had */
}

TEST(what_cannot_be_inherited)
{
    int wrong = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_int_equal(write(wrong, "no counters", 11), 11);
    assert_int_equal(mk_counters_inherit(wrong), -EINVAL);
    assert_true(mk_counters_inherit(wrong) < 0); /* it was closed */
    int pipes[2];
    assert_int_equal(pipe(pipes), 0);
    assert_int_equal(mk_counters_inherit(pipes[0]), -EINVAL);
    assert_true(fcntl(pipes[0], F_GETFD) >= 0); /* it is something else's */
    close(pipes[0]);
    close(pipes[1]);
    int small = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_int_equal(fcntl(small, F_ADD_SEALS, F_SEAL_GROW), 0); /* to read behind its end would be SIGBUS */
    assert_int_equal(mk_counters_inherit(small), -EPERM);
    assert_int_equal(mk__counters_memory_open(), 0); /* counts anew */
    assert_listing("");
    mk__counters_memory_close();
}

/* Another process has the same memory, and may be broken: what it writes must not lead beyond the memory. */
TEST(a_damaged_memory)
{
    int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    run_until_crash(fd);
    enum { HEAD_WORDS = 4096 };
    srand(1);
    uint32_t *words = mmap(NULL, HEAD_WORDS * 4, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(words, MAP_FAILED);
    assert_int_equal(mk_counters_inherit(dup(fd)), 0);
    assert_int_equal(mk__counters_memory_open(), 0);
    for (unsigned i = 4; i < HEAD_WORDS; i++) /* the numbers, families and counters */
        words[i] = (uint32_t)rand() % 8 ? (uint32_t)rand() * 2654435761u : 40 + (uint32_t)rand() % 256 * 8;
    struct listing l = {.text = ""};
    mk_counters_each(list_one, &l);
    mk__cell *cells = mk__counters_memory_claim();
    mk__counters_add(cells, open_labelled(&hits, "a"), 1);
    mk__counters_observe(cells, open_labelled(&times, "a"), 1);
    mk__counters_memory_give_back(cells);
    munmap(words, HEAD_WORDS * 4);
    mk__counters_memory_close();
    close(fd);
}

/* ── labels ── */

TEST(labels)
{
    static const struct {
        const char *labels, *name, *value;
    } rows[] = {
        {"host=\"example.org\",status=\"2xx\"", "host", "example.org"},
        {"host=\"example.org\",status=\"2xx\"", "status", "2xx"},
        {"host=\"example.org\",status=\"2xx\"", "hos", ""},
        {"a=\"x\\\"y\\\\z\\n\",b=\"\"", "a", "x\"y\\z\n"},
        {"a=\"status=\\\"1\\\",\",status=\"2\"", "status", "2"},
        {"", "a", ""},
        {"a", "a", ""},
        {"a=", "a", ""},
        {"a=\"", "a", ""},
        {"a=\"b", "a", ""},
        {"a=\"b\\", "a", ""},
        {"a=\"b\\\"", "a", ""},
    };
    char storage[MK_COUNTER_LABEL_VALUE_BYTES];
    for (size_t i = 0; i < COUNT(rows); i++) {
        size_t len = strlen(rows[i].labels);
        char *copy = mk_test_guarded(rows[i].labels, len);
        assert_str_equal(mk_counter_label_get(mk_str(copy, len), mk_str_c(rows[i].name), storage), rows[i].value);
        mk_test_unguard(copy, len);
    }
}

/* ── counters that are held ── */

TEST(shown_as_long_as_they_are_held, mk_test_counters_open, mk_test_counters_close)
{
    mk__cell *cells = mk__counters_memory_claim();
    const struct mk_counter *one = hold_labelled(&hits, "b\"\\"), *again = hold_labelled(&hits, "b\"\\");
    assert_ptr_equal(one, again);
    mk__counters_add(cells, one, 2);
    mk_counter_put(one);
    assert_listing("cache/hits{host=\"b\\\"\\\\\"} 2\n");
    mk_counter_put(again);
    assert_listing("");
    one = hold_labelled(&hits, "b\"\\");
    mk__counters_add(cells, one, 10);
    assert_listing("cache/hits{host=\"b\\\"\\\\\"} 12\n");
    mk_counter_put(one);
    mk__counters_memory_give_back(cells);
}

/* Those that a former process has left, but for families that are not held, and for hosts. */
TEST(what_nothing_holds_is_hidden, mk_test_counters_open, mk_test_counters_close)
{
    static const struct mk_counter_info other = {"other", "hits", "which is not held", MK_COUNTER_SUM};
    const struct mk_counter *held = hold_labelled(&hits, "a"), *host = hold_host(&requests, "h");
    open_labelled(&hits, "b");
    open_labelled(&other, "b");
    mk__counters_put(host);
    mk__counters_hide_unheld();
    assert_listing("cache/hits{host=\"a\"} 0\n"
                   "/requests{host=\"h\",status=\"2xx\"} 0\n"
                   "other/hits{host=\"b\"} 0\n");
    mk_counter_put(held);
}

TEST(a_process_that_does_not_serve_yet_hides_nothing)
{
    assert_int_equal(mk__counters_memory_open(), 0);
    mk_counter_put(hold_labelled(&hits, "b"));
    mk__counters_hide_unheld();
    assert_listing("cache/hits{host=\"b\"} 0\n");
    mk__counters_memory_serve();
    mk__counters_hide_unheld();
    assert_listing("");
    mk__counters_memory_close();
}

/* The next process of an upgrade: from its start, until it ends. */
TEST(a_former_process_hides_nothing, mk_test_counters_open, mk_test_counters_close)
{
    int fd = dup(mk_counters_fd()), ready[2], done[2];
    char byte = 0;
    assert_int_equal(pipe(ready) | pipe(done), 0);
    pid_t child = fork();
    if (child == 0) {
        mk__counters_memory_close();
        int err = mk_counters_inherit(fd) | mk__counters_memory_open();
        hold_labelled(&hits, "b");
        _exit(err || write(ready[1], &byte, 1) != 1 || read(done[0], &byte, 1) != 1);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    mk_counter_put(hold_labelled(&hits, "b"));
    mk__counters_hide_unheld();
    assert_listing("cache/hits{host=\"b\"} 0\n");
    assert_int_equal(write(done[1], &byte, 1), 1);
    assert_int_equal(waitpid(child, NULL, 0), child);
    mk__counters_hide_unheld();
    assert_listing("");
    for (unsigned i = 0; i < 2; i++) {
        close(ready[i]);
        close(done[i]);
    }
    close(fd);
}

// SPDX-License-Identifier: Apache-2.0
/* The n-th allocation of the cache fails: the request gets its answer, nothing is lost, and later requests are kept. */
#include "fixture.h"

enum { LARGE_BYTES = 9000, REQUESTS_MAX = 5, FAILURES_MAX = 1000 };

static char large[LARGE_BYTES + 1];

static const struct {
    const char *name, *answer;
} names[] = {{"a.txt", "first"}, {"large.bin", large}, {"dir", "403"}, {"none", "404"}};

static _Atomic long *const countdowns[] = {&mk__alloc_countdown, &mk__pages_countdown};

/* Asks often enough that the name is kept, and found. */
static void expect_kept(const char *name, const char *answer)
{
    for (int i = 0; i < 3; i++)
        assert_string_equal(ask_body(name), answer);
    struct counts before = read_counts();
    assert_string_equal(ask_body(name), answer);
    expect_counts(&before, COUNTS([COUNT_HITS] = 1));
}

/* Has the n-th allocation fail in a request after others for the same name. Returns false if it has fewer. */
static bool fail_request(unsigned i, unsigned earlier, _Atomic long *countdown, long n)
{
    open_cache("", "");
    for (unsigned k = 0; k < earlier; k++)
        assert_string_equal(ask_body(names[i].name), names[i].answer);
    failure.countdown = countdown;
    failure.n = n;
    assert_string_equal(ask_body(names[i].name), names[i].answer);
    expect_kept(names[i].name, names[i].answer);
    close_cache();
    return failure.happened;
}

/* Returns how many allocations were made to fail. */
static long fail_requests(unsigned i, _Atomic long *countdown)
{
    long all = 0;
    for (unsigned earlier = 0; earlier < REQUESTS_MAX; earlier++) {
        long n = 0;
        while (fail_request(i, earlier, countdown, n))
            assert_true(++n < FAILURES_MAX);
        all += n;
    }
    return all;
}

TEST(requests)
{
    unsigned before = mk_test_descriptors();
    for (unsigned i = 0; i < COUNT(names); i++)
        for (size_t k = 0; k < COUNT(countdowns); k++)
            assert_true(fail_requests(i, countdowns[k]) > 0);
    assert_int_equal(mk_test_descriptors(), before);
}

/* Has the n-th allocation fail when a disk thread is to revalidate an entry; the next request has one do it. */
static bool fail_check(long n)
{
    open_cache("", "");
    expect_kept("a.txt", "first");
    disk.waits = true;
    mk_test_pass(&w, 1000);
    struct counts before = read_counts();
    failure.countdown = &mk__alloc_countdown;
    failure.n = n;
    assert_string_equal(ask_body("a.txt"), "503");
    bool failed = failure.happened;
    expect_counts(&before, COUNTS([COUNT_WAITS] = 1));
    assert_string_equal(ask_body("a.txt"), "503"); /* without the failure no other job begins */
    finish_job();
    expect_counts(&before, COUNTS([COUNT_WAITS] = 1, [COUNT_REVALIDATED] = 1));
    assert_int_equal(disk.jobs, 1);
    close_cache();
    return failed;
}

TEST(checks)
{
    long n = 0;
    while (fail_check(n))
        n++;
    assert_int_equal(n, 1);
}

/* There are no disk threads either. */
TEST(checks_without_threads)
{
    open_cache("", "");
    expect_kept("a.txt", "first");
    disk.waits = true;
    w.loop.thread_pool = NULL;
    mk_test_pass(&w, 1000);
    struct counts before = read_counts();
    for (int i = 0; i < 3; i++)
        assert_string_equal(ask_body("a.txt"), "503");
    expect_counts(&before, COUNTS([COUNT_WAITS] = 3));
    assert_int_equal(site.worker->refs, 0);
    disk.waits = false;
    assert_string_equal(ask_body("a.txt"), "first");
    expect_counts(&before, COUNTS([COUNT_HITS] = 1, [COUNT_REVALIDATED] = 1));
    close_cache();
}

/* ── the start ── */

static int load_and_release(void *ctx)
{
    static struct mk_generation g;
    (void)ctx;
    int err = load_generation(&g, "    Missing 7\n", "[CACHE]\n    Files Immutable\n");
    mk__generation_release(&g);
    return err;
}

TEST(start)
{
    assert_int_equal(mk__counters_memory_open(), 0);
    assert_true(mk_test_failing_allocs(load_and_release, NULL) > 3);
    long n = 0;
    for (bool failed = true; failed; n++) {
        mk__pages_countdown = n;
        int err = load_and_release(NULL);
        failed = mk__pages_countdown < 0;
        mk__pages_countdown = -1;
        assert_true(failed ? err < 0 : err == 0);
    }
    assert_true(n > 1);
    mk__counters_memory_close();
}

/* A worker of a new generation, while the cache has entries. */
TEST(workers)
{
    open_cache("", "");
    expect_kept("a.txt", "first");
    struct mk_worker *worker = site.worker;
    for (long n = 0;; n++) {
        mk__alloc_countdown = n;
        int err = open_worker(site.current);
        bool failed = mk__alloc_countdown < 0;
        mk__alloc_countdown = -1;
        assert_true(failed ? err == -ENOMEM : err == 0);
        if (!failed)
            break;
    }
    mk__worker_free(worker);
    expect_kept("a.txt", "first");
    close_cache();
}

static int make_files(void **state)
{
    if (make_cache_folder(state) < 0)
        return -1;
    memset(large, 'x', LARGE_BYTES);
    mk_test_write("root/a.txt", MK_STR("first"));
    mk_test_write("root/large.bin", mk_str(large, LARGE_BYTES));
    mk_test_mkdir("root/dir");
    return 0;
}

TEST_FILE(make_files, mk_test_folder_remove)

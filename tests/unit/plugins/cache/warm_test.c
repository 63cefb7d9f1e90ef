// SPDX-License-Identifier: Apache-2.0
/* Files that are loaded before the first request: how long workers wait, and what ends the run. */
#include "fixture.h"

#include "plugins/cache/calls.h"

enum { LONG_MS = 60000 };

#define WARM(text) "[CACHE]\n    Warm " text "\n"

static struct warm warm;

static void open_warm(const char *rules)
{
    open_with_limits(rules);
    memset(&warm, 0, sizeof(warm));
    warm_init(&warm, site.cache, site.current);
    warm_find_hosts(&warm);
}

/* The end of a run is a message to its worker, which the run holds until then. */
static void await_end(void)
{
    for (int i = 0; i < 60 && site.worker->refs; i++)
        mk_test_wait_wakeup(&w);
    assert_int_equal(site.worker->refs, 0);
}

static void close_warm(void)
{
    await_end();
    warm_release(&warm);
    close_cache();
}

TEST(loaded_before_the_first_request)
{
    open_warm(WARM("/") WARM("../../list"));
    assert_true(warm.is_needed);
    disk.is_fast = true;
    warm_serve(&warm, site.worker, LONG_MS);
    assert_true(warm.has_ended);
    clear_calls();
    assert_string_equal(ask_body("a.txt"), "first");
    assert_string_equal(ask_body("dir/c.txt"), "third");
    assert_int_equal(disk.opens, 0);
    warm_serve(&warm, site.worker, LONG_MS); /* of another worker: it has ended */
    close_warm();
}

TEST(nothing_to_load)
{
    open_warm("[CACHE]\n    Files Immutable\n");
    assert_false(warm.is_needed);
    warm_serve(&warm, site.worker, LONG_MS);
    assert_false(warm.has_started);
    close_warm();
}

/* After the wait, or without one, the run continues while the worker serves. */
TEST(workers_do_not_wait_longer)
{
    for (uint32_t wait_ms = 0; wait_ms < 2; wait_ms++) {
        open_warm(WARM("../../list"));
        warm_serve(&warm, site.worker, wait_ms);
        assert_int_equal(site.worker->refs, 1);
        assert_string_equal(ask_body("b.txt"), "second");
        disk.is_fast = true;
        sem_post(&disk.allowed);
        await_end();
        clear_calls();
        assert_string_equal(ask_body("a.txt"), "first");
        assert_int_equal(disk.opens, 0);
        close_warm();
    }
}

TEST(cancelled)
{
    open_warm(WARM("/"));
    warm_serve(&warm, site.worker, 0);
    warm_cancel(&warm);
    disk.is_fast = true;
    sem_post(&disk.allowed);
    close_warm();
    assert_true(warm.has_ended);
}

/* A list that has vanished since the configuration was checked is logged; the rest is loaded. */
TEST(lists_that_cannot_be_read)
{
    mk_test_write("gone", MK_STR("/a.txt\n"));
    open_warm(WARM("../../gone") WARM("../../list"));
    assert_int_equal(unlink(mk_test_path("gone")), 0);
    disk.is_fast = true;
    warm_serve(&warm, site.worker, LONG_MS);
    clear_calls();
    assert_string_equal(ask_body("a.txt"), "first");
    assert_int_equal(disk.opens, 0);
    close_warm();
}

TEST(no_threads_and_no_memory)
{
    open_warm(WARM("/"));
    w.loop.thread_pool = NULL;
    warm_serve(&warm, site.worker, LONG_MS); /* does not wait for a run that cannot start */
    assert_true(warm.has_ended);
    close_warm();
    bool happened = true;
    for (long n = 0; happened; n++) {
        open_warm(WARM("/") WARM("../../list"));
        disk.is_fast = true;
        mk__alloc_countdown = n;
        warm_serve(&warm, site.worker, LONG_MS);
        happened = mk__alloc_countdown < 0;
        mk__alloc_countdown = -1;
        assert_true(warm.has_ended);
        assert_string_equal(ask_body("a.txt"), "first");
        close_warm();
    }
}

static int make_files(void **state)
{
    if (make_cache_folder(state) < 0)
        return -1;
    mk_test_mkdir("root/dir");
    mk_test_write("root/a.txt", MK_STR("first"));
    mk_test_write("root/b.txt", MK_STR("second"));
    mk_test_write("root/dir/c.txt", MK_STR("third"));
    mk_test_write("list", MK_STR("/a.txt\n/none\n"));
    return 0;
}

TEST_FILE(make_files, mk_test_folder_remove)

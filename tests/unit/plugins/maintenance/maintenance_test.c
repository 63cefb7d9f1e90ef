// SPDX-License-Identifier: Apache-2.0
/*
 * Requests that wait for a disk thread to look for the file: those that get their answer, and those that are gone
 * by then. The kernel never resolves a link of /proc without waiting, so that each look is a disk thread's.
 */
#include "plugin_host.h"

#include "loop/job.h"

extern const struct mk_plugin mk_plugin_maintenance;

static struct mk_thread_pool jobs;
static int n_taken;

/* Content that is never ready. */
static int take(struct mk_request *req)
{
    (void)req;
    n_taken++;
    return 0;
}

static const struct mk_plugin taker = {.name = "taker", .on_content = take};

static void open_all(void)
{
    n_taken = 0;
    mk__job_open_pool(&jobs, 1);
    open_plugin_host("[MAINTENANCE]\nFlagFile /proc/self/cwd/flag\n", &mk_plugin_maintenance, &taker, &jobs);
}

static void close_all(void)
{
    mk__conn_abort_all(&w.http);
    mk_thread_pool_close(&jobs);
    close_plugin_host();
}

/* What is sent once the disk thread has rung. */
static const char *await_answer(struct mk_test_client *c)
{
    for (int i = 0; i < 1000; i++) {
        struct mk_str text = mk_test_received(c);
        if (text.len)
            return text.p;
        assert_true(mk_test_wait_wakeup(&w));
    }
    return "";
}

static void await_taken(int n)
{
    for (int i = 0; i < 1000 && n_taken < n; i++)
        assert_true(mk_test_wait_wakeup(&w));
    assert_int_equal(n_taken, n);
}

TEST(waits)
{
    mk_test_write("flag", MK_STR(""));
    open_all();
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(GET));
    assert_string_equal(mk_test_state(c), "handler");
    assert_non_null(strstr(await_answer(c), "HTTP/1.1 503 "));
    mk_test_send(c, MK_STR(GET));
    mk_test_settle(&w); /* known for a second */
    assert_non_null(strstr(mk_test_received(c).p, "HTTP/1.1 503 "));
    close_all();
    unlink(mk_test_path("flag"));
}

/* The first request of a generation waits for the disk; the next one knows what the start has seen. */
TEST(is_closed_from_the_first_request)
{
    mk_test_write("flag", MK_STR(""));
    open_all();
    struct mk_test_client *first = mk_test_connect(&w, MK_STR(GET)), *second = mk_test_connect(&w, MK_STR(GET));
    assert_non_null(strstr(mk_test_received(second).p, "HTTP/1.1 503 "));
    assert_non_null(strstr(await_answer(first), "HTTP/1.1 503 "));
    assert_int_equal(n_taken, 0);
    close_all();
    unlink(mk_test_path("flag"));
}

TEST(is_gone_before_the_answer)
{
    mk_test_write("flag", MK_STR(""));
    open_all();
    mk_test_connect(&w, MK_STR(GET));
    mk__conn_abort_all(&w.http);
    assert_true(mk_test_wait_wakeup(&w));
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(GET));
    assert_non_null(strstr(await_answer(c), "HTTP/1.1 503 "));
    close_all();
    unlink(mk_test_path("flag"));
}

/* The end of a request that once waited is nothing to the one that waits now. */
TEST(ends_while_another_waits)
{
    open_all();
    struct mk_test_client *first = mk_test_connect(&w, MK_STR(GET));
    await_taken(1);
    mk_test_pass(&w, 1000);
    mk_test_write("flag", MK_STR(""));
    struct mk_test_client *second = mk_test_connect(&w, MK_STR(GET));
    assert_string_equal(mk_test_state(second), "handler");
    mk_test_reset(first);
    assert_non_null(strstr(await_answer(second), "HTTP/1.1 503 "));
    assert_string_equal(mk_test_state(first), "closed");
    assert_int_equal(n_taken, 1);
    close_all();
    unlink(mk_test_path("flag"));
}

/* If the file cannot be checked, the last known state counts. */
TEST(without_a_disk_thread)
{
    open_all();
    w.loop.thread_pool = NULL;
    mk_test_write("flag", MK_STR(""));
    mk_test_connect(&w, MK_STR(GET));
    assert_int_equal(n_taken, 1);
    w.loop.thread_pool = &jobs;
    mk_test_pass(&w, 1000);
    assert_non_null(strstr(await_answer(mk_test_connect(&w, MK_STR(GET))), "HTTP/1.1 503 "));
    close_all();
    unlink(mk_test_path("flag"));
}

TEST_FILE(make_plugin_host, mk_test_folder_remove)

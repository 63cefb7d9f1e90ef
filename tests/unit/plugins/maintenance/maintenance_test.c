// SPDX-License-Identifier: Apache-2.0
/*
 * Requests that wait for a disk thread to look for the file: those that get their answer, and those that are gone
 * by then. The kernel never resolves a link of /proc without waiting, so that each look is a disk thread's.
 */
#include "folder.h"
#include "http/h1_fixture.h"

#include "loop/job.h"
#include "server/generation/generation_load.h"
#include "server/worker/thread.h"

extern const struct mk_plugin mk_plugin_maintenance;

static struct mk_thread_pool jobs;
static struct mk_generation generation;
static struct mk__limits limits = {.open = 1000}; /* no test has more connections */
static struct mk__thread thread = {.limits = &limits, .receiver.assigned = 1000};
static struct mk_worker worker;
static mk__cell *cells; /* there is no memory of counters */
static const struct mk_plugin *loaded[MK__PLUGINS_MAX];
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
    char dir[512];
    struct mk__generation_source source = {.dir = dir};
    snprintf(dir, sizeof(dir), "%s", mk_test_path("conf"));
    assert_int_equal(mk__generation_load(&generation, &source), 0);
    memcpy(loaded, generation.plugins, sizeof(loaded));
    for (unsigned i = 0; i < generation.n_plugins; i++)
        if (generation.plugins[i] != &mk_plugin_maintenance)
            generation.plugins[i] = &taker;
    mk__generation_find_hooks(&generation);
    worker = (struct mk_worker){.generation = &generation, .cells = &cells};
    thread.worker = &worker;
    n_taken = 0;
    mk__job_open_pool(&jobs, 1);
    assert_int_equal(mk_test_fixture_open(&w, &jobs), 0);
    assert_int_equal(mk_test_http_open(&w), 0);
    w.http.app = &mk__request_hooks_app;
    w.http.app_ctx = &thread;
}

static void close_all(void)
{
    mk__conn_abort_all(&w.http);
    mk_thread_pool_close(&jobs);
    mk_test_fixture_close(&w);
    memcpy(generation.plugins, loaded, sizeof(loaded));
    mk__generation_release(&generation);
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

static int set_up(void **state)
{
    if (mk_test_folder_make(state) < 0)
        return -1;
    mk_test_mkdir("conf");
    mk_test_mkdir("conf/sites");
    mk_test_write("conf/monkey.conf", MK_STR("[SERVER]\n    Listen 127.0.0.1:0\n"));
    mk_test_write("conf/sites/default",
                  MK_STR("[HOST]\n    DocumentRoot .\n[MAINTENANCE]\n    FlagFile /proc/self/cwd/flag\n"));
    return chdir(mk_test_folder);
}

TEST_FILE(set_up, mk_test_folder_remove)

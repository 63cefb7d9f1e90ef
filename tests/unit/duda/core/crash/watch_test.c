// SPDX-License-Identifier: Apache-2.0
/* Notices services that block a worker; the looks of the watchdog are made by the test, at times of its own. */
#include "testing.h"

#include <dirent.h>
#include <stdlib.h>

#include <monkey/log.h>

#include "duda/core/crash/crash.h"
#include "duda/core/crash/watch.h"

enum { LOG_BYTES_MAX = 4096 };

static int open_log(void **state)
{
    static int fd;
    *state = &fd;
    fd = memfd_create("log", MFD_CLOEXEC);
    mk_log_to(fd, MK_LOG_INFO);
    return fd < 0;
}

static int close_log(void **state)
{
    mk_log_to(-1, MK_LOG_INFO);
    return close(*(int *)*state);
}

/* Returns what was logged since the last call. */
static const char *read_log(void **state)
{
    static char text[LOG_BYTES_MAX];
    int fd = *(int *)*state;
    ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
    assert_in_range(n, 0, sizeof(text) - 1);
    text[n] = '\0';
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    return text;
}

TEST(a_call_that_blocks, open_log, close_log)
{
    struct watch_slot slot = {.service = "shop", .worker = 3};
    assert_false(watch_check(&slot, 5000));
    watch_begin(&slot);
    assert_true(watch_check(&slot, 6000));
    assert_true(watch_check(&slot, 6999));
    assert_string_equal(read_log(state), "");
    assert_true(watch_check(&slot, 7000));
    assert_non_null(strstr(read_log(state), "the service \"shop\" blocks worker 3 for more than 1 s in a callback: "));
    assert_true(watch_check(&slot, 9000));
    assert_string_equal(read_log(state), "");
    watch_end(&slot);
    assert_true(watch_check(&slot, 9250));
    assert_non_null(
        strstr(read_log(state), "the service \"shop\" has blocked worker 3 for 3.2 s, and it continues now"));
    assert_false(watch_check(&slot, 20000));
    assert_string_equal(read_log(state), "");
}

/* A call inside of another one belongs to it; one after another does not. */
TEST(many_calls_are_not_one, open_log, close_log)
{
    struct watch_slot slot = {.service = "shop"};
    for (uint64_t now_ms = 1000; now_ms < 60000; now_ms += 250) {
        watch_begin(&slot);
        assert_true(watch_check(&slot, now_ms));
        watch_begin(&slot);
        watch_end(&slot);
        assert_int_equal(slot.calls % 2, 1);
        watch_end(&slot);
    }
    assert_int_equal(slot.calls % 2, 0);
    assert_string_equal(read_log(state), "");
}

TEST(a_call_outside_of_workers, open_log, close_log)
{
    struct watch_slot slot = {.service = "shop", .call = "duda_exit()"};
    crash_use_log();
    watch_begin(&slot);
    watch_check(&slot, 100);
    watch_check(&slot, 1100);
    assert_non_null(
        strstr(read_log(state), "the service \"shop\" has not returned from duda_exit() for more than 1 s"));
    watch_end(&slot);
    watch_check(&slot, 2600);
    assert_non_null(strstr(read_log(state), "the service \"shop\" has returned from duda_exit() after 2.5 s"));
}

/* A thread that runs tasks has its own limit. */
TEST(a_task, open_log, close_log)
{
    struct watch_slot slot = {.service = "shop", .task_ms = 2500};
    watch_begin(&slot);
    watch_check(&slot, 1000);
    watch_check(&slot, 3499);
    assert_string_equal(read_log(state), "");
    watch_check(&slot, 3500);
    assert_non_null(
        strstr(read_log(state), "the service \"shop\" has a task that runs for more than 2.5 s: a callback"));
    watch_check(&slot, 9000);
    assert_string_equal(read_log(state), "");
    watch_end(&slot);
    watch_check(&slot, 9250);
    assert_non_null(strstr(read_log(state), "the task of the service \"shop\" has ended after 8.2 s"));
}

static unsigned count_threads(void)
{
    unsigned n = 0;
    DIR *folder = opendir("/proc/self/task");
    assert_non_null(folder);
    while (readdir(folder))
        n++;
    closedir(folder);
    return n;
}

/* A thread that was joined may still be in /proc for a moment. */
static void await_threads(unsigned n)
{
    for (unsigned ms = 0; ms < 5000 && count_threads() != n; ms++)
        usleep(1000);
    assert_int_equal(count_threads(), n);
}

/* The program may fork before the first slot is added, and after the last one was removed. */
TEST(the_thread_lives_as_long_as_slots, open_log, close_log)
{
    struct watch_slot slots[2] = {{.service = "a"}, {.service = "b"}};
    assert_int_equal(watch_add(&slots[0]), 0); /* the first thread may bring one of a sanitizer */
    unsigned before = count_threads() - 1;
    watch_remove(&slots[0]);
    await_threads(before);
    for (unsigned round = 0; round < 3; round++) {
        assert_int_equal(watch_add(&slots[0]), 0);
        assert_int_equal(watch_add(&slots[1]), 0);
        await_threads(before + 1);
        watch_remove(&slots[0]);
        await_threads(before + 1);
        watch_remove(&slots[1]);
        await_threads(before);
    }
    assert_string_equal(read_log(state), "");
}

TEST(a_call_wakes_the_thread, open_log, close_log)
{
    struct watch_slot slot = {.service = "a"};
    assert_int_equal(watch_add(&slot), 0);
    watch_sleeps = true;
    watch_begin(&slot);
    assert_false(watch_sleeps);
    watch_end(&slot);
    watch_remove(&slot);
}

// SPDX-License-Identifier: Apache-2.0
/* Timers of services, on their own clock. */
#include "testing.h"

#include <errno.h>

#include "harness.h"
#include "service_slots.h"

#include "duda/core/common/current.h"
#include "duda/core/event/timer.h"

struct fixture {
    struct mk_test_fixture fixture;
    struct service service;
    struct service_worker worker;
    struct mk_test_slots slots;
    unsigned calls;
    duda_timer_t own, other;
    int result;
};

static void open_fixture(struct fixture *f)
{
    memset(f, 0, sizeof(*f));
    assert_int_equal(mk_test_fixture_open(&f->fixture, NULL), 0);
    mk_test_slots_open(&f->slots, &f->service, &f->worker);
    f->worker.loop = &f->fixture.loop;
}

static void close_fixture(struct fixture *f)
{
    timer_cancel_all(&f->worker);
    assert_int_equal(f->worker.calls, 0);
    mk_test_slots_close(&f->slots);
    mk_test_fixture_close(&f->fixture);
}

static duda_timer_t start(struct fixture *f, uint32_t ms, bool interval, duda_call_fn fn)
{
    int err = 1;
    duda_timer_t timer = timer_start(&f->worker, ms, interval, fn, f, &err);
    assert_true(timer ? err == 0 : err < 0);
    return timer;
}

static void count_call(void *data)
{
    struct fixture *f = data;
    assert_ptr_equal(current.worker, &f->worker);
    f->calls++;
}

TEST(a_timer_fires_once_and_an_interval_again)
{
    struct fixture f;
    open_fixture(&f);
    start(&f, 10, false, count_call);
    mk_test_pass(&f.fixture, 9);
    assert_int_equal(f.calls, 0);
    mk_test_pass(&f.fixture, 1);
    assert_int_equal(f.calls, 1);
    mk_test_pass(&f.fixture, 100);
    assert_int_equal(f.calls, 1);
    duda_timer_t timer = start(&f, 10, true, count_call);
    mk_test_pass(&f.fixture, 35);
    assert_int_equal(f.calls, 4);
    assert_int_equal(timer_cancel(&f.worker, timer), 0);
    assert_int_equal(timer_cancel(&f.worker, timer), -ENOENT);
    mk_test_pass(&f.fixture, 100);
    assert_int_equal(f.calls, 4);
    assert_null(current.worker);
    close_fixture(&f);
}

/* Cancels itself and the other one, and starts new ones in their slots. */
static void cancel_both(void *data)
{
    struct fixture *f = data;
    f->calls++;
    f->result = timer_cancel(&f->worker, f->own);
    assert_int_equal(timer_cancel(&f->worker, f->other), 0);
    start(f, 50, false, count_call);
    start(f, 50, false, count_call);
    assert_int_equal(timer_cancel(&f->worker, f->own), -ENOENT);
    assert_int_equal(timer_cancel(&f->worker, f->other), -ENOENT);
}

TEST(callbacks_cancel_timers)
{
    struct fixture f;
    for (int interval = 0; interval < 2; interval++) {
        open_fixture(&f);
        f.own = start(&f, 10, interval, cancel_both);
        f.other = start(&f, 10, true, count_call);
        mk_test_pass(&f.fixture, 40);
        assert_int_equal(f.calls, 1);
        assert_int_equal(f.result, interval ? 0 : -ENOENT); /* a timer that fires once is over when it is called */
        mk_test_pass(&f.fixture, 100);
        assert_int_equal(f.calls, 3);
        close_fixture(&f);
    }
}

static void end_all(void *data)
{
    struct fixture *f = data;
    f->calls++;
    timer_cancel_all(&f->worker);
}

TEST(a_callback_may_end_its_worker)
{
    struct fixture f;
    for (int interval = 0; interval < 2; interval++) {
        open_fixture(&f);
        start(&f, 10, interval, end_all);
        start(&f, 10, true, count_call);
        start(&f, 11, true, count_call);
        mk_test_pass(&f.fixture, 100);
        assert_int_equal(f.calls, 1);
        close_fixture(&f);
    }
}

TEST(numbers_that_mean_nothing_are_refused)
{
    struct fixture f;
    open_fixture(&f);
    assert_int_equal(timer_cancel(&f.worker, 0), -ENOENT);
    assert_int_equal(timer_cancel(&f.worker, 12345), -ENOENT);
    assert_int_equal(timer_cancel(&f.worker, UINT64_MAX), -ENOENT);
    duda_timer_t timer = start(&f, 10, false, count_call);
    assert_int_equal(timer_cancel(&f.worker, timer + (1ULL << 32)), -ENOENT);
    assert_int_equal(timer_cancel(&f.worker, timer + 1), -ENOENT);
    assert_int_equal(start(&f, 0, true, count_call), 0);
    assert_int_equal(start(&f, 1, false, NULL), 0);
    close_fixture(&f);
}

TEST(there_is_a_limit)
{
    struct fixture f;
    open_fixture(&f);
    for (int i = 0; i < 65536; i++)
        assert_int_not_equal(start(&f, 1000, false, count_call), 0);
    assert_int_equal(start(&f, 1000, false, count_call), 0);
    mk_test_pass(&f.fixture, 1000);
    assert_int_equal(f.calls, 65536);
    assert_int_not_equal(start(&f, 1000, false, count_call), 0);
    close_fixture(&f);
}

static int start_with_failures(void *ctx)
{
    struct fixture *f = ctx;
    int err = 0;
    for (int i = 0; i < 40 && err == 0; i++)
        timer_start(&f->worker, 10, true, count_call, f, &err);
    timer_cancel_all(&f->worker);
    return err;
}

TEST(missing_memory_is_an_error)
{
    struct fixture f;
    open_fixture(&f);
    assert_true(mk_test_failing_allocs(start_with_failures, &f) > 40);
    close_fixture(&f);
}

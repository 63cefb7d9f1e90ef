// SPDX-License-Identifier: Apache-2.0
/* Outgoing connections to names with one or many addresses: which is tried when, and which wins. */
#include "dial_calls.h"

TEST(a_name_with_one_address, open_test, close_test)
{
    struct place *p = listen_at("127.0.0.2:0", 8);
    known[0] = (struct test_host){"one", 0, {"127.0.0.2"}};
    known[1] = (struct test_host){"away", -EAGAIN, {NULL}};
    start(at("one", p->port), 1000);
    expect_connected();
    start(at("one", p->port), 1000); /* known by now */
    settle();
    expect_connected();
    assert_int_equal(asked, 1);
    start(at("away", p->port), 1000);
    assert_int_equal(result(), -EAGAIN);
    start(at("unknown", p->port), 1000);
    assert_int_equal(result(), -ENXIO);
    assert_int_equal(calls, 1);
}

TEST(the_next_address_when_one_fails, open_test, close_test)
{
    struct place *p = listen_at("127.0.0.3:0", 8);
    unsigned port = free_port();
    known[0] = (struct test_host){"three", 0, {"127.0.0.1", "[::1]", "127.0.0.2", "127.0.0.3"}};
    start(at("three", p->port), 1000);
    expect_connected();
    start(at("three", port), 1000);
    assert_int_equal(result(), -ECONNREFUSED);
}

TEST(the_next_address_after_a_while, open_test, close_test)
{
    struct place *good = listen_at("127.0.0.3:0", 8);
    hole_at(at("127.0.0.1", good->port));
    hole_at(at("127.0.0.2", good->port));
    known[0] = (struct test_host){"two", 0, {"127.0.0.1", "127.0.0.3"}};
    known[1] = (struct test_host){"three", 0, {"127.0.0.1", "127.0.0.2", "127.0.0.3"}};
    start(at("two", good->port), 3000);
    expect_waiting();
    pass(249);
    expect_waiting();
    pass(1);
    expect_connected();

    start(at("two", good->port), 100); /* half of the time for each */
    pass(49);
    expect_waiting();
    pass(1);
    expect_connected();

    /* 250 ms after the first the second, then half of what is left, and the first is closed */
    start(at("three", good->port), 3000);
    expect_waiting();
    pass(250 + 1374);
    expect_waiting();
    pass(1);
    expect_connected();
}

TEST(no_address_answers, open_test, close_test)
{
    struct place *p = hole_at("127.0.0.1:0");
    hole_at(at("127.0.0.2", p->port));
    hole_at(at("127.0.0.3", p->port));
    known[0] = (struct test_host){"holes", 0, {"127.0.0.1", "127.0.0.2", "127.0.0.3"}};
    start(at("holes", p->port), 2000);
    expect_waiting();
    unsigned before = mk_test_descriptors();
    for (int i = 0; i < 1999; i++) {
        pass(1);
        assert_in_range(mk_test_descriptors(), before, before + 1);
    }
    expect_waiting();
    pass(1);
    assert_int_equal(result(), -ETIMEDOUT);
    assert_int_equal(mk_test_descriptors(), before - 1);
}

/* Which socket is that? Numbers of descriptors come again, cookies do not. */
static uint64_t cookie(unsigned attempt)
{
    uint64_t value = 0;
    socklen_t len = sizeof(value);
    assert_int_equal(getsockopt(dials[0].attempts[attempt].event.fd, SOL_SOCKET, SO_COOKIE, &value, &len), 0);
    return value;
}

TEST(the_older_one_makes_room, open_test, close_test)
{
    struct place *p = hole_at("127.0.0.1:0");
    uint64_t first, second, third;
    hole_at(at("127.0.0.2", p->port));
    known[0] = (struct test_host){"holes", 0, {"127.0.0.1", "127.0.0.2", "127.0.0.1", "127.0.0.2"}};
    start(at("holes", p->port), 3250);
    expect_waiting();
    pass(250);
    first = cookie(0);
    second = cookie(1);
    pass(999);
    assert_int_equal(cookie(0), first);
    pass(1);
    third = cookie(0);
    assert_int_not_equal(third, first);
    assert_int_equal(cookie(1), second);
    pass(999);
    assert_int_equal(cookie(1), second);
    pass(1);
    assert_int_not_equal(cookie(1), second);
    assert_int_equal(cookie(0), third);
    pass(999);
    expect_waiting();
    pass(1);
    assert_int_equal(result(), -ETIMEDOUT);
}

/* The loop is closed before it has read what a lookup found: the name is freed, and then the dial is cancelled. */
TEST(a_cancel_after_the_loop, open_test, close_test)
{
    struct place *p = listen_at("127.0.0.1:0", 8);
    known[0] = (struct test_host){"one", 0, {"127.0.0.1"}};
    start(at("one", p->port), 1000);
    mk__loop_turn(&loop);
    await_wakeup();
    mk__resolver_close(&loop);
    mk__loop_close(&loop);
    mk_dial_cancel(&dials[0]);
    assert_int_equal(calls, 0);
    await_threads();
    assert_int_equal(mk__loop_open(&loop, &test_poller, &test_clock, NULL), 0);
    assert_int_equal(mk__resolver_open(&loop, look_up), 0);
}

static int dial_once(void *ctx)
{
    const struct place *p = ctx;
    mk__resolver_close(&loop);
    int err = mk__resolver_open(&loop, look_up);
    if (err < 0)
        return err;
    calls = 0;
    results[0] = NOT_YET;
    const struct mk_dial_target *target;
    const char *error;
    err = mk_dial_target_parse(&arena, mk_str_c(at("one", p->port)), 0, &target, &error);
    if (err < 0)
        return err;
    mk_dial_start(&dials[0], &loop, target, NULL, on_done);
    err = result();
    if (err < 0)
        return err;
    expect_connected();
    return 0;
}

TEST(failing_allocations, open_test, close_test)
{
    struct place *p = listen_at("127.0.0.1:0", 64);
    known[0] = (struct test_host){"one", 0, {"127.0.0.1"}};
    assert_true(mk_test_failing_allocs(dial_once, p) >= 2);
}

TEST_FILE(mk_test_folder_make, mk_test_folder_remove)

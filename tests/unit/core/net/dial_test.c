// SPDX-License-Identifier: Apache-2.0
/* Outgoing connections to one address of this machine, and what callers do to them. */
#include "dial_calls.h"

#include <netinet/tcp.h>
#include <sys/resource.h>

static void ignore_event(struct mk_event *event, uint32_t events)
{
    (void)event;
    (void)events;
}

TEST(tcp, open_test, close_test)
{
    struct place *p = listen_at("127.0.0.1:0", 8);
    start(at("127.0.0.1", p->port), 1000);
    int fd = result();
    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
    assert_int_equal(option_of(fd, IPPROTO_TCP, TCP_NODELAY), 1);
    assert_int_equal(option_of(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT), 0);
    char control[16];
    socklen_t len = sizeof(control);
    assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, control, &len), 0);
    assert_string_equal(control, "reno"); /* on loopback addresses; each kernel has it */
    struct mk_event event = {.ready = ignore_event, .fd = fd};
    assert_int_equal(mk_event_add(&loop, &event, EPOLLIN), 0); /* it is not watched any more */
    mk_event_del(&loop, &event);
    expect_connected();
}

TEST(unix, open_test, close_test)
{
    const char *text = at_unix("s");
    start(text, 1000);
    assert_int_equal(result(), -ENOENT);
    listen_at(text, 8);
    start(text, 1000);
    expect_connected();
    unlink(mk_test_path("s"));
}

TEST(refused, open_test, close_test)
{
    start(at("127.0.0.1", free_port()), 1000);
    assert_int_equal(result(), -ECONNREFUSED);
    assert_int_equal(calls, 1);
}

TEST(no_answer, open_test, close_test)
{
    struct place *p = hole_at("127.0.0.1:0");
    start(at("127.0.0.1", p->port), 700);
    pass(699);
    expect_waiting();
    pass(1);
    assert_int_equal(result(), -ETIMEDOUT);
    assert_int_equal(calls, 1);
    start_nth(0, at("127.0.0.1", p->port), NULL);
    pass(MK_DIAL_TIMEOUT_MS - 1);
    expect_waiting();
    pass(1);
    assert_int_equal(result(), -ETIMEDOUT);
}

TEST(unix_queue_is_full, open_test, close_test)
{
    const char *text = at_unix("full");
    struct place *p = hole_at(text);
    start(text, 500);
    pass(100);
    expect_waiting();
    close(accept(p->fd, NULL, NULL));
    pass(19);
    expect_waiting();
    pass(1);
    expect_connected();
    connect_blindly(p);
    start(text, 500);
    pass(499);
    expect_waiting();
    pass(1);
    assert_int_equal(result(), -ETIMEDOUT);
    unlink(mk_test_path("full"));
}

TEST(means_of_our_own, open_test, close_test)
{
    struct place *p = hole_at("127.0.0.1:0");
    struct rlimit before, none;
    refuses_events = true;
    start(at("127.0.0.1", p->port), 1000);
    assert_int_equal(result(), -ENOSPC);
    refuses_events = false;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){.rlim_cur = 3, .rlim_max = before.rlim_max};
    start(at("127.0.0.1", p->port), 1000);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    settle();
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(results[0], -EMFILE);
}

TEST(local_address, open_test, close_test)
{
    struct mk_dial_options options = {.local = target_of("127.0.0.9")};
    struct mk__addr addr = {.len = sizeof(addr.un)};
    struct place *p = listen_at("127.0.0.1:0", 8);
    calls = 0;
    start_nth(0, at("127.0.0.1", p->port), &options);
    int fd = result();
    assert_true(fd >= 0);
    assert_int_equal(getsockname(fd, &addr.sa, &addr.len), 0);
    assert_int_equal(addr.in.sin_addr.s_addr, htonl(0x7f000009));
    expect_connected();
    options.local = target_of("192.0.2.1"); /* of the documentation, on no machine */
    start_nth(0, at("127.0.0.1", p->port), &options);
    assert_int_equal(result(), -EADDRNOTAVAIL);
    options.local = target_of("[::1]");
    start_nth(0, at("127.0.0.1", p->port), &options);
    assert_int_equal(result(), -EAFNOSUPPORT);
    options.local = target_of("localhost");
    start_nth(0, at("127.0.0.1", p->port), &options);
    assert_int_equal(result(), -EAFNOSUPPORT);
}

/* Did the connection's first bytes travel in the SYN? */
static bool had_early_data(int fd)
{
    struct tcp_info info;
    socklen_t len = sizeof(info);
    assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len), 0);
    return info.tcpi_options & TCPI_OPT_SYN_DATA;
}

TEST(fast_open, open_test, close_test)
{
    struct mk_dial_options options = {.fast_open = true};
    struct place *p = listen_at("127.0.0.1:0", 8);
    char byte;
    for (int i = 0; i < 2; i++) { /* the first one brings the cookie */
        calls = 0;
        start_nth(0, at("127.0.0.1", p->port), &options);
        int fd = result();
        assert_true(fd >= 0);
        assert_int_equal(option_of(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT), 1);
        assert_int_equal(write(fd, "x", 1), 1);
        int peer = accept(p->fd, NULL, NULL);
        assert_int_equal(read(peer, &byte, 1), 1);
        if (mk__listen_has_fast_open() && i == 1)
            assert_true(had_early_data(fd));
        else if (i == 0)
            assert_false(had_early_data(fd));
        close(peer);
        expect_connected();
    }
}

/* ── giving up, and other things that callers do ── */

static void cancel(void)
{
    mk_dial_cancel(&dials[0]);
    memset(&dials[0], 0xa5, sizeof(dials[0]));
    settle();
    assert_int_equal(results[0], NOT_YET);
}

TEST(cancel_in_each_state, open_test, close_test)
{
    static struct mk_dial never;
    struct place *p = hole_at("127.0.0.1:0");
    mk_dial_cancel(&never);
    const char *text = at_unix("c");
    hole_at(text);
    start(at("127.0.0.1", p->port), 1000); /* not begun */
    cancel();
    start(at("127.0.0.1", p->port), 1000); /* connecting */
    settle();
    cancel();
    known[0] = (struct test_host){"two", 0, {"127.0.0.1", "127.0.0.1"}};
    start(at("two", p->port), 1000); /* both are connecting */
    expect_waiting();
    pass(300);
    assert_true(dials[0].attempts[0].event.fd >= 0 && dials[0].attempts[1].event.fd >= 0);
    cancel();
    start(text, 1000); /* waiting for a Unix socket's queue */
    settle();
    cancel();
    unlink(mk_test_path("c"));
    pass(MK__RESOLVER_TTL_MS);
    start(at("two", p->port), 1000); /* its result is in the inbox */
    mk__loop_turn(&loop);
    await_wakeup();
    cancel();
    gated = true;
    start("elsewhere:80", 1000); /* the lookup is running, and continues without us */
    settle();
    cancel();
    start("nowhere:80", 100); /* the time ends it */
    pass(100);
    assert_int_equal(results[0], -ETIMEDOUT);
    gated = false;
    sem_post(&gate);
    sem_post(&gate);
}

static void cancel_other(struct mk_dial *dial, int fd)
{
    calls++;
    close(fd);
    mk_dial_cancel(&dials[dial == &dials[0]]);
}

TEST(cancel_in_the_same_turn, open_test, close_test)
{
    struct place *p = listen_at("127.0.0.1:0", 8);
    for (unsigned i = 0; i < 2; i++)
        mk_dial_start(&dials[i], &loop, target_of(at("127.0.0.1", p->port)), NULL, cancel_other);
    settle();
    while (!calls)
        await_event();
    settle();
    assert_int_equal(calls, 1);
}

static void start_again(struct mk_dial *dial, int err)
{
    assert_int_equal(err, -ECONNREFUSED);
    calls++;
    if (calls < 3)
        mk_dial_start(dial, &loop, dial->target, &dial->options, start_again);
}

TEST(again_from_the_callback, open_test, close_test)
{
    mk_dial_start(&dials[0], &loop, target_of(at("127.0.0.1", free_port())), NULL, start_again);
    settle();
    while (calls < 3)
        await_event();
    settle();
    assert_int_equal(calls, 3);
}

TEST(phrases, open_test, close_test)
{
    static const int mine[] = {-ENXIO, -EAGAIN, -EBUSY, -ETIMEDOUT};
    for (size_t i = 0; i < COUNT(mine); i++)
        assert_string_not_equal(mk_dial_error(mine[i]), strerror(-mine[i]));
    assert_string_equal(mk_dial_error(-ECONNREFUSED), strerror(ECONNREFUSED));
}

TEST_FILE(mk_test_folder_make, mk_test_folder_remove)

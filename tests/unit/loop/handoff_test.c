// SPDX-License-Identifier: Apache-2.0
/* Descriptors that another thread puts into a loop's queue: on real sockets and epoll, and tags by hand. */
#include "turn.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "loop/loop.h"

static struct mk_loop loop;
static struct mk__handoff handoff;
static struct mk_account account;
static int arrivals, calls, last_fd;
static uint32_t last_sequence, last_events;
static bool admits;
static struct mk_event event;

static void on_ready(struct mk_event *e, uint32_t events)
{
    assert_ptr_equal(e, &event);
    calls++;
    last_events = events;
}

static void on_arrival(struct mk__handoff *g, int fd, uint32_t sequence, uint32_t events)
{
    assert_ptr_equal(g, &handoff);
    arrivals++;
    last_fd = fd;
    last_sequence = sequence;
    last_events = events;
    if (!admits)
        return;
    assert_int_equal(mk__handoff_admit(g, fd, sequence, events), 0);
    event = (struct mk_event){on_ready, fd};
    assert_int_equal(mk__handoff_take(g, &event), events);
    assert_int_equal(mk__handoff_take(g, &event), 0); /* once */
}

static void open_handoff(void)
{
    arrivals = calls = 0;
    admits = true;
    account = (struct mk_account){0};
    assert_int_equal(mk__loop_open(&loop, &mk__poller_epoll, &mk__clock_system, NULL), 0);
    mk__handoff_init(&handoff, &account, on_arrival);
    loop.handoff = &handoff;
}

static void close_handoff(void)
{
    mk__handoff_release(&handoff);
    assert_int_equal(account.bytes, 0);
    mk__loop_close(&loop);
}

static void add_fd(int fd, uint32_t sequence)
{
    struct epoll_event wanted = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
                                 .data.u64 = mk__handoff_tag(fd, sequence)};
    assert_int_equal(epoll_ctl(loop.poll_fd, EPOLL_CTL_ADD, fd, &wanted), 0);
}

static void test_arrives_once_though_it_is_silent(void **state)
{
    int pair[2];
    (void)state;
    open_handoff();
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
    add_fd(pair[0], 7);
    mk_test_turn(&loop);
    assert_int_equal(arrivals, 1);
    assert_int_equal(last_fd, pair[0]);
    assert_int_equal(last_sequence, 7);
    assert_int_equal(last_events, EPOLLOUT);
    mk_test_turn(&loop);
    assert_int_equal(arrivals, 1);
    assert_int_equal(calls, 0);
    assert_int_equal(send(pair[1], "x", 1, 0), 1);
    mk_test_turn(&loop);
    assert_int_equal(calls, 1);
    assert_int_equal(last_events, EPOLLIN | EPOLLOUT);
    mk_event_del(&loop, &event); /* clears its place, and leaves the registration alone */
    assert_int_equal(send(pair[1], "x", 1, 0), 1);
    mk_test_turn(&loop);
    assert_int_equal(calls, 1);
    assert_int_equal(arrivals, 1); /* no event of a closed descriptor */
    close(pair[0]);
    close(pair[1]);
    close_handoff();
}

static void test_other_events_are_not_handoffs(void **state)
{
    int pair[2];
    (void)state;
    open_handoff();
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
    event = (struct mk_event){on_ready, pair[0]};
    assert_false((uintptr_t)&event & 1);
    assert_int_equal(mk__handoff_admit(&handoff, pair[1], 1, EPOLLIN), 0);
    assert_int_equal(mk__handoff_take(&handoff, &event), 0); /* another descriptor was admitted */
    assert_int_equal(mk_event_add(&loop, &event, EPOLLOUT), 0);
    mk_test_turn(&loop);
    assert_int_equal(calls, 1);
    mk_event_del(&loop, &event);
    mk_test_turn(&loop);
    assert_int_equal(calls, 1);
    close(pair[0]);
    close(pair[1]);
    close_handoff();
}

/* The number is closed and given out again while an event of its last owner still lies in the batch. */
static void test_stale_sequences(void **state)
{
    (void)state;
    open_handoff();
    mk__handoff_dispatch(&handoff, mk__handoff_tag(300, 1), EPOLLIN);
    assert_int_equal(arrivals, 1);
    mk__handoff_dispatch(&handoff, mk__handoff_tag(300, 1), EPOLLIN);
    assert_int_equal(calls, 1);
    assert_true(mk__handoff_forget(&handoff, &event));
    assert_false(mk__handoff_forget(&handoff, &event));
    mk__handoff_dispatch(&handoff, mk__handoff_tag(300, 1), EPOLLIN); /* of the one that is gone */
    assert_int_equal(calls, 1);
    assert_int_equal(arrivals, 1);
    mk__handoff_dispatch(&handoff, mk__handoff_tag(300, 2), EPOLLIN); /* the next one */
    assert_int_equal(arrivals, 2);
    mk__handoff_dispatch(&handoff, mk__handoff_tag(300, 2), EPOLLIN);
    assert_int_equal(calls, 2);
    admits = false; /* the callback reports that this one is closed */
    mk__handoff_dispatch(&handoff, mk__handoff_tag(300, 1), EPOLLIN);
    assert_int_equal(arrivals, 3);
    mk__handoff_dispatch(&handoff, mk__handoff_tag(300, 2), EPOLLIN); /* and the place stays the other's */
    assert_int_equal(calls, 3);
    close_handoff();
}

static void test_tags(void **state)
{
    static const int fds[] = {0, 1, 255, 256, 1 << 20, INT32_MAX};
    static const uint32_t sequences[] = {1, 2, 1u << 31, UINT32_MAX};
    (void)state;
    open_handoff();
    admits = false;
    for (size_t i = 0; i < COUNT(fds); i++)
        for (size_t k = 0; k < COUNT(sequences); k++) {
            uint64_t tag = mk__handoff_tag(fds[i], sequences[k]);
            assert_true(tag & 1);
            mk__handoff_dispatch(&handoff, tag, EPOLLOUT);
            assert_int_equal(last_fd, fds[i]);
            assert_int_equal(last_sequence, sequences[k]);
        }
    assert_int_equal(handoff.n, 0); /* none was admitted */
    close_handoff();
}

static void test_the_table_grows(void **state)
{
    struct mk_event events[3] = {{on_ready, 3}, {on_ready, 256}, {on_ready, 5000}};
    (void)state;
    open_handoff();
    for (int i = 0; i < 3; i++) {
        assert_int_equal(mk__handoff_admit(&handoff, events[i].fd, 1, EPOLLIN), 0);
        assert_int_equal(mk__handoff_take(&handoff, &events[i]), EPOLLIN);
        assert_in_range(handoff.n, events[i].fd + 1, events[i].fd < 256 ? 256 : 2 * events[i].fd);
        assert_int_equal(account.bytes, handoff.n * sizeof(struct mk__handoff_fd));
    }
    for (int i = 0; i < 3; i++)
        assert_true(mk__handoff_forget(&handoff, &events[i])); /* all have kept their places */
    account.bytes_max = account.bytes + 100;
    assert_int_equal(mk__handoff_admit(&handoff, (int)handoff.n, 1, EPOLLIN), -ENOMEM);
    assert_int_equal(mk__handoff_admit(&handoff, 4000, 1, EPOLLIN), 0); /* the others are as before */
    handoff.events = 0;
    close_handoff();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arrives_once_though_it_is_silent),
        cmocka_unit_test(test_other_events_are_not_handoffs),
        cmocka_unit_test(test_stale_sequences),
        cmocka_unit_test(test_tags),
        cmocka_unit_test(test_the_table_grows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

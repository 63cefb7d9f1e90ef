// SPDX-License-Identifier: Apache-2.0
/* The acceptor on a real socket: what it hands on, and what it does when descriptors run out. */
#include "turn.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "loop/loop.h"
#include "server/listen/acceptor.h"
#include "server/listen/limits.h"
#include "server/listen/listeners.h"

enum { TAKEN_MAX = 256 };

static struct mk_loop loop;
static struct mk__acceptor acceptor;
static struct mk__limits limits;
static int listener, taken[TAKEN_MAX], n_taken, room_to_make;
static struct sockaddr_in addr;

static void assert_peer(const struct mk__accepted *accepted)
{
    struct sockaddr_in in;
    socklen_t len = sizeof(in);
    struct mk_address expected = {0};
    assert_int_equal(getpeername(accepted->fd, (struct sockaddr *)&in, &len), 0);
    mk_address_set(&expected, AF_INET, &in.sin_addr, ntohs(in.sin_port));
    assert_true(mk_address_equal(&accepted->peer, &expected));
    assert_int_equal(accepted->peer.port, expected.port);
}

static int take(struct mk__acceptor *a, const struct mk__accepted *accepted)
{
    int fd = accepted->fd;
    assert_ptr_equal(a, &acceptor);
    assert_peer(accepted);
    assert_ptr_equal(a->ctx, &listener);
    assert_true(n_taken < TAKEN_MAX);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
    taken[n_taken++] = fd;
    return 0;
}

/* Gives descriptors back while the test says that there are some to give. */
static bool make_room(struct mk__acceptor *a)
{
    assert_ptr_equal(a, &acceptor);
    if (room_to_make == 0 || n_taken == 0)
        return false;
    room_to_make--;
    close(taken[--n_taken]);
    return true;
}

static const struct mk__acceptor_callbacks calls = {take, make_room, NULL};

static void close_taken(void)
{
    while (n_taken)
        close(taken[--n_taken]);
}

static void set_up_acceptor(void)
{
    socklen_t len = sizeof(addr);
    n_taken = room_to_make = 0;
    limits.open = 0;
    static const struct mk_transport plain = {.name = "plain"};
    static struct mk__listener listening = {.transport = &plain};
    acceptor.limits = &limits;
    acceptor.listener = &listening;
    addr = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&addr, sizeof(addr)), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&addr, &len), 0);
    assert_int_equal(listen(listener, 256), 0);
    assert_int_equal(mk__loop_open(&loop, &mk__poller_epoll, &mk__clock_system, NULL), 0);
    assert_int_equal(mk__acceptor_open(&acceptor, &loop, listener, false, &calls, &listener), 0);
}

/* Several batches. */
static void run_until_quiet(void)
{
    do
        mk_test_turn(&loop);
    while (loop.batch_len > 0);
}

static void tear_down_acceptor(void)
{
    mk__acceptor_close(&acceptor);
    mk__acceptor_close(&acceptor); /* twice is once */
    mk__loop_close(&loop);
    close(listener);
    close_taken();
}

static int connect_one(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
    return fd;
}

TEST(hands_on_what_comes)
{
    int clients[100];
    set_up_acceptor();
    mk_test_turn(&loop);
    assert_int_equal(n_taken, 0);
    for (int i = 0; i < 100; i++)
        clients[i] = connect_one();
    for (int before = 0; n_taken < 100; before = n_taken) {
        mk_test_turn(&loop);
        assert_in_range(n_taken - before, 1, 16); /* in batches, so that open connections get their turn */
    }
    for (int i = 0; i < 100; i++)
        close(clients[i]);
    tear_down_acceptor();
}

static void ignore_ready(struct mk_event *event, uint32_t events)
{
    (void)event, (void)events;
}

/* In a turn with many events, which there are fewer of. */
TEST(long_turns_have_longer_batches)
{
    static struct mk_event busy[200];
    int clients[100];
    set_up_acceptor();
    for (int i = 0; i < 200; i++) {
        busy[i] = (struct mk_event){.fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK), .ready = ignore_ready};
        assert_int_equal(mk_event_add(&loop, &busy[i], EPOLLIN), 0);
    }
    for (int i = 0; i < 100; i++)
        clients[i] = connect_one();
    mk_test_turn(&loop);
    assert_int_equal(loop.batch_len, 201);
    assert_int_equal(n_taken, 50);
    mk_test_turn(&loop);
    assert_int_equal(n_taken, 100);
    for (int i = 0; i < 200; i++) {
        mk_event_del(&loop, &busy[i]);
        close(busy[i].fd);
    }
    for (int i = 0; i < 100; i++)
        close(clients[i]);
    tear_down_acceptor();
}

TEST(closing_takes_what_waits)
{
    set_up_acceptor();
    int client = connect_one();
    mk__acceptor_close(&acceptor);
    assert_int_equal(n_taken, 1);
    int late = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(late, (struct sockaddr *)&addr, sizeof(addr)), -1); /* refused at once */
    close(late);
    close(client);
    tear_down_acceptor();
}

/* ── too few descriptors ── */

static struct rlimit before;

static void limit_descriptors(rlim_t n)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    limit = before;
    limit.rlim_cur = n;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

TEST(looks_away_when_descriptors_run_out)
{
    int clients[40];
    set_up_acceptor();
    for (int i = 0; i < 40; i++)
        clients[i] = connect_one();
    limit_descriptors((rlim_t)clients[39] + 11);
    uint64_t start = mk_loop_now_ms(&loop);
    mk_test_turn(&loop);
    int first = n_taken;
    assert_in_range(first, 1, 12);
    for (int i = 0; i < 10; i++)
        mk_test_turn(&loop); /* the socket stays readable: it must not be asked again and again */
    assert_int_equal(n_taken, first);
    close_taken();
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    while (n_taken < 40 - first && mk_loop_now_ms(&loop) - start < 2000)
        assert_int_equal(mk__loop_turn(&loop), 0); /* now it waits for its timer */
    assert_int_equal(n_taken, 40 - first);
    assert_true(mk_loop_now_ms(&loop) - start >= 100);
    for (int i = 0; i < 40; i++)
        close(clients[i]);
    tear_down_acceptor();
}

TEST(idle_ones_make_room)
{
    int clients[40];
    set_up_acceptor();
    for (int i = 0; i < 40; i++)
        clients[i] = connect_one();
    limit_descriptors((rlim_t)clients[39] + 11);
    room_to_make = 1000;
    run_until_quiet();
    assert_true(room_to_make < 1000);
    assert_in_range(1000 - room_to_make + n_taken, 40, 41); /* all were accepted */
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    for (int i = 0; i < 40; i++)
        close(clients[i]);
    tear_down_acceptor();
}

/* ── too many connections ── */

static void set_plan(int plan, int64_t max)
{
    struct mk__settings settings = {.over_capacity = plan, .connections_max = max};
    mk__limits_set(&limits, &settings);
}

TEST(looks_away_when_there_are_enough)
{
    int clients[20];
    set_up_acceptor();
    set_plan(MK__OVER_CAPACITY_RESIST, 5);
    for (int i = 0; i < 20; i++)
        clients[i] = connect_one();
    mk_test_turn(&loop);
    assert_int_equal(n_taken, 5);
    for (int i = 0; i < 10; i++) {
        mk_test_turn(&loop);
        assert_int_equal(loop.batch_len, 0); /* the socket is readable, and not watched */
    }
    close_taken();
    limits.open = 0;
    mk__acceptor_retry(&acceptor); /* without waiting for the timer */
    mk_test_turn(&loop);
    assert_int_equal(n_taken, 5);
    mk__acceptor_retry(&acceptor);
    mk_test_turn(&loop);
    assert_int_equal(n_taken, 5);
    set_plan(MK__OVER_CAPACITY_RESIST, 0);
    mk__acceptor_retry(&acceptor);
    mk_test_turn(&loop);
    assert_int_equal(n_taken, 15);
    for (int i = 0; i < 20; i++)
        close(clients[i]);
    tear_down_acceptor();
}

/* By the number of connections, by the descriptors that are kept for files, or with none left at all. */
TEST(refuses_the_rest)
{
    int clients[40];
    for (int way = 0; way < 2; way++) {
        set_up_acceptor();
        set_plan(MK__OVER_CAPACITY_DROP, way == 0 ? 5 : 0);
        for (int i = 0; i < 40; i++)
            clients[i] = connect_one();
        if (way == 1) {
            limit_descriptors((rlim_t)clients[39] + 11);
            mk__acceptor_update_fd_limit(&acceptor);
        }
        unsigned refused = limits.refused;
        run_until_quiet();
        assert_in_range(n_taken, 1, 10);
        assert_int_equal(limits.refused - refused, 40 - n_taken); /* each once: none waits, none is counted again */
        assert_int_equal(limits.open, n_taken);
        if (way == 1)
            assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
        int fd = connect_one();
        for (int i = 0, n = n_taken; i < n; i++)
            close(taken[--n_taken]);
        limits.open = 0;
        mk__acceptor_update_fd_limit(&acceptor);
        mk_test_turn(&loop);
        assert_int_equal(n_taken, 1); /* all is as before */
        close(fd);
        for (int i = 0; i < 40; i++)
            close(clients[i]);
        tear_down_acceptor();
    }
    set_plan(MK__OVER_CAPACITY_RESIST, 0);
}

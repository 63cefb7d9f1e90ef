// SPDX-License-Identifier: Apache-2.0
/* Messages between a server and whoever started it: whole, in order, with their descriptors. */
#include "folder.h"

#include <sys/socket.h>
#include <unistd.h>

#include "../../../bin/monkey/channel.c"

static int pair[2];

static int open_pair(void **state)
{
    (void)state;
    return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair);
}

static int close_pair(void **state)
{
    (void)state;
    close(pair[0]);
    close(pair[1]);
    return 0;
}

static void test_text(void **state)
{
    static struct channel_message sent = {.kind = CHANNEL_PID_FILE, .text = "/run/x", .len = 6}, got;
    (void)state;
    assert_int_equal(channel_receive(pair[1], &got), -EAGAIN);
    assert_int_equal(channel_send(pair[0], &sent), 0);
    sent.kind = CHANNEL_READY;
    sent.len = 0;
    assert_int_equal(channel_send(pair[0], &sent), 0);
    assert_int_equal(channel_receive(pair[1], &got), 0);
    assert_int_equal(got.kind, CHANNEL_PID_FILE);
    assert_int_equal(got.len, 6);
    assert_string_equal((char *)got.text, "/run/x");
    assert_int_equal(channel_receive(pair[1], &got), 0);
    assert_int_equal(got.kind, CHANNEL_READY);
    assert_int_equal(got.len, 0);
}

static void test_the_end(void **state)
{
    static struct channel_message message = {.kind = CHANNEL_READY};
    (void)state;
    close(pair[0]);
    assert_int_equal(channel_receive(pair[1], &message), -EPIPE);
    assert_int_equal(channel_send(pair[1], &message), -EPIPE);
    assert_int_equal(open_pair(NULL), 0);
}

/* More than one message takes; the second list replaces the first. */
static void test_sockets(void **state)
{
    static struct channel_message message;
    struct sockets list = {0}, other = {0};
    (void)state;
    unsigned before = mk_test_descriptors();
    for (int i = 0; i < CHANNEL_FDS_MAX * 2 + 5; i++)
        assert_int_equal(sockets_add(&list, i % 3, i % 2), 0);
    for (int round = 0; round < 2; round++) {
        assert_int_equal(sockets_send(&list, pair[0]), 0);
        while (channel_receive(pair[1], &message) == 0) {
            assert_int_equal(message.kind, CHANNEL_SOCKETS);
            sockets_receive(&other, &message);
        }
        assert_int_equal(other.n, list.n);
        assert_int_equal(mk_test_descriptors(), before + list.n);
    }
    for (unsigned i = 0; i < other.n; i++) {
        assert_int_equal(other.items[i].own, i % 2);
        assert_int_equal(fcntl(other.items[i].fd, F_GETFD), FD_CLOEXEC);
    }
    sockets_clear(&other, true);
    sockets_clear(&list, false);
    assert_int_equal(mk_test_descriptors(), before);
}

/* Descriptors beyond what the text tells of are nobody's. */
static void test_sockets_that_lie(void **state)
{
    static struct channel_message sent = {.kind = CHANNEL_SOCKETS, .text = {1, 1}, .len = 2, .n_fds = 3}, got;
    struct sockets list = {0};
    (void)state;
    unsigned before = mk_test_descriptors();
    assert_int_equal(channel_send(pair[0], &sent), 0);
    assert_int_equal(channel_receive(pair[1], &got), 0);
    sockets_receive(&list, &got);
    assert_int_equal(list.n, 1);
    sockets_clear(&list, true);
    assert_int_equal(mk_test_descriptors(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_the_end),
        cmocka_unit_test(test_sockets),
        cmocka_unit_test(test_sockets_that_lie),
    };
    return cmocka_run_group_tests(tests, open_pair, close_pair);
}

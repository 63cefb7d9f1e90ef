// SPDX-License-Identifier: Apache-2.0
/* Packets with descriptors, and those that are refused. */
#include "testing.h"

#include "kit/child/child.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>

static int pair[2];

static int open_pair(void **state)
{
    (void)state;
    return mk__message_open_pair(pair);
}

static int close_pair(void **state)
{
    (void)state;
    close(pair[0]);
    return close(pair[1]);
}

/* Returns the lowest free descriptor: the same as before if none is left open. */
static int get_free_fd(void)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    close(fd);
    return fd;
}

TEST(descriptors, open_pair, close_pair)
{
    char got[16];
    int fds[MK__MESSAGE_FDS_MAX], sent[] = {0, 1, 2};
    unsigned n;
    int before = get_free_fd();
    assert_int_equal(mk__message_receive(pair[1], got, sizeof(got), fds, &n), -EAGAIN);
    for (unsigned count = 0; count <= MK__MESSAGE_FDS_MAX; count++) {
        assert_int_equal(mk__message_send(pair[0], MK_STR("hello"), sent, count), 0);
        assert_int_equal(mk__message_receive(pair[1], got, sizeof(got), fds, &n), 5);
        assert_int_equal(n, count);
        for (unsigned i = 0; i < n; i++) {
            assert_int_equal(fcntl(fds[i], F_GETFD), FD_CLOEXEC);
            close(fds[i]);
        }
    }
    assert_int_equal(get_free_fd(), before);
}

TEST(refused, open_pair, close_pair)
{
    char got[4];
    int fds[MK__MESSAGE_FDS_MAX], sent[] = {0, 1, 2, 0};
    unsigned n;
    int before = get_free_fd();
    assert_int_equal(mk__message_send(pair[0], MK_STR("12345"), sent, 2), 0);
    assert_int_equal(mk__message_receive(pair[1], got, sizeof(got), fds, &n), -EBADMSG);
    assert_int_equal(n, 0);
    assert_int_equal(mk__message_send(pair[0], MK_STR("1"), sent, 4), 0);
    assert_int_equal(mk__message_receive(pair[1], got, sizeof(got), fds, &n), -EMFILE);
    assert_int_equal(mk__message_send(pair[0], MK_STR(""), sent, 1), 0);
    assert_int_equal(mk__message_receive(pair[1], got, sizeof(got), fds, &n), 0);
    assert_int_equal(n, 0);
    assert_int_equal(get_free_fd(), before);
}

TEST(no_descriptor_left, open_pair, close_pair)
{
    char got[8] = {0};
    int fds[MK__MESSAGE_FDS_MAX], sent[] = {0};
    unsigned n;
    struct rlimit limit, none;
    assert_int_equal(mk__message_send(pair[0], MK_STR("packet"), sent, 1), 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = (struct rlimit){(rlim_t)get_free_fd(), limit.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    assert_int_equal(mk__message_receive(pair[1], got, sizeof(got), fds, &n), -EMFILE);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(n, 0);
    assert_string_equal(got, "packet");
}

TEST(end, open_pair, close_pair)
{
    char got[4];
    int fds[MK__MESSAGE_FDS_MAX];
    unsigned n;
    close(pair[0]);
    assert_int_equal(mk__message_receive(pair[1], got, sizeof(got), fds, &n), 0);
    assert_int_equal(mk__message_send(pair[1], MK_STR("1"), NULL, 0), -EPIPE);
    pair[0] = dup(pair[1]);
}

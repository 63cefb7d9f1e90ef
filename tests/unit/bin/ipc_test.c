// SPDX-License-Identifier: Apache-2.0
/* Messages between a server and its launcher: whole, in order, with their descriptors. */
#include "folder.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bin/monkey/ipc.c"

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

TEST(text)
{
    static struct ipc_message sent = {.kind = IPC_PID_FILE, .text = "/run/x", .len = 6}, got;
    assert_int_equal(ipc_receive(pair[1], &got), -EAGAIN);
    assert_int_equal(ipc_send(pair[0], &sent), 0);
    sent.kind = IPC_READY;
    sent.len = 0;
    assert_int_equal(ipc_send(pair[0], &sent), 0);
    assert_int_equal(ipc_receive(pair[1], &got), 0);
    assert_int_equal(got.kind, IPC_PID_FILE);
    assert_int_equal(got.len, 6);
    assert_string_equal((char *)got.text, "/run/x");
    assert_int_equal(ipc_receive(pair[1], &got), 0);
    assert_int_equal(got.kind, IPC_READY);
    assert_int_equal(got.len, 0);
}

TEST(the_end)
{
    static struct ipc_message message = {.kind = IPC_READY};
    close(pair[0]);
    assert_int_equal(ipc_receive(pair[1], &message), -EPIPE);
    assert_int_equal(ipc_send(pair[1], &message), -EPIPE);
    assert_int_equal(open_pair(NULL), 0);
}

static int open_listener(void)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)) + listen(fd, 1), 0);
    return fd;
}

enum { MOST = 1000 };

/* More than one message takes; the second list replaces the first. */
TEST(sockets)
{
    static struct ipc_message message;
    struct ipc_sockets list = {0}, other = {0};
    unsigned before = mk_test_descriptors();
    int listener = open_listener();
    for (int i = 0; i < IPC_FDS_MAX * 2 + 5; i++)
        assert_int_equal(ipc_add_socket(&list, listener, i % 2), 0);
    for (int round = 0; round < 2; round++) {
        assert_int_equal(ipc_send_sockets(&list, pair[0]), 0);
        while (ipc_receive(pair[1], &message) == 0) {
            assert_int_equal(message.kind, IPC_SOCKETS);
            assert_int_equal(ipc_receive_sockets(&other, &message, MOST), 0);
        }
        assert_int_equal(other.n, list.n);
        assert_int_equal(mk_test_descriptors(), before + 1 + list.n);
    }
    for (unsigned i = 0; i < other.n; i++) {
        assert_int_equal(other.items[i].own, i % 2);
        assert_int_equal(fcntl(other.items[i].fd, F_GETFD), FD_CLOEXEC);
    }
    ipc_clear_sockets(&other, true);
    ipc_clear_sockets(&list, false);
    close(listener);
    assert_int_equal(mk_test_descriptors(), before);
}

/* Descriptors beyond what the text tells of, and beyond the most that are wanted, are closed. */
TEST(sockets_that_are_too_many)
{
    static struct ipc_message sent = {.kind = IPC_SOCKETS, .text = {1, 1, 1}, .len = 3, .n_fds = 4}, got;
    struct ipc_sockets list = {0};
    unsigned before = mk_test_descriptors();
    int listener = open_listener();
    for (unsigned i = 0; i < sent.n_fds; i++)
        sent.fds[i] = listener;
    for (unsigned most = 1; most <= 3; most++) {
        assert_int_equal(ipc_send(pair[0], &sent), 0);
        assert_int_equal(ipc_receive(pair[1], &got), 0);
        unsigned kept = most < 2 ? most : 2;
        assert_int_equal(ipc_receive_sockets(&list, &got, most), 4 - kept);
        assert_int_equal(list.n, kept);
    }
    sent.text[0] = 0; /* the list continues */
    assert_int_equal(ipc_send(pair[0], &sent), 0);
    assert_int_equal(ipc_receive(pair[1], &got), 0);
    assert_int_equal(ipc_receive_sockets(&list, &got, 3), 3);
    assert_int_equal(list.n, 3);
    ipc_clear_sockets(&list, true);
    close(listener);
    assert_int_equal(mk_test_descriptors(), before);
}

static int open_pipe(void)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    close(ends[0]);
    return ends[1];
}

/* Descriptors of other kinds are closed. */
TEST(sockets_that_are_none)
{
    static struct ipc_message sent = {.kind = IPC_SOCKETS, .text = {1}, .len = 1}, got;
    struct ipc_sockets list = {0};
    unsigned before = mk_test_descriptors();
    const int kinds[] = {
        open("/dev/null", O_RDWR),
        open("/", O_PATH),
        open_pipe(),
        socket(AF_INET, SOCK_STREAM, 0), /* does not listen */
        socket(AF_INET, SOCK_DGRAM, 0),
        socket(AF_UNIX, SOCK_STREAM, 0),
        socket(AF_UNIX, SOCK_DGRAM, 0),
        socket(AF_NETLINK, SOCK_RAW, 0),
        dup(pair[0]),
    };
    for (size_t i = 0; i < COUNT(kinds); i++) {
        assert_true(kinds[i] >= 0);
        sent.text[sent.len++] = 1;
        sent.fds[sent.n_fds++] = kinds[i];
    }
    assert_int_equal(ipc_send(pair[0], &sent), 0);
    assert_int_equal(ipc_receive(pair[1], &got), 0);
    assert_int_equal(ipc_receive_sockets(&list, &got, MOST), COUNT(kinds));
    assert_int_equal(list.n, 0);
    for (size_t i = 0; i < COUNT(kinds); i++)
        close(kinds[i]);
    assert_int_equal(mk_test_descriptors(), before);
}

static void send_raw(const void *bytes, size_t len, unsigned n_fds)
{
    static union {
        struct cmsghdr head;
        char space[CMSG_SPACE(sizeof(int) * 250)];
    } control;
    struct iovec part = {(void *)(uintptr_t)bytes, len};
    struct msghdr head = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control};
    int *fds = (int *)CMSG_DATA(&control.head);
    head.msg_controllen = n_fds ? CMSG_SPACE(sizeof(int) * n_fds) : 0;
    control.head = (struct cmsghdr){CMSG_LEN(sizeof(int) * n_fds), SOL_SOCKET, SCM_RIGHTS};
    for (unsigned i = 0; i < n_fds; i++)
        fds[i] = pair[0];
    assert_int_equal(sendmsg(pair[0], &head, 0), len);
}

/* Nothing of it stays open. */
TEST(messages_that_do_not_fit)
{
    static char long_text[IPC_TEXT_MAX + 10];
    static struct ipc_message got;
    const struct {
        const char *bytes;
        size_t len;
        unsigned n_fds;
        int result;
    } rows[] = {
        {"L", 1, IPC_FDS_MAX, 0}, {"L", 1, IPC_FDS_MAX + 1, -EBADMSG}, {"L", 1, 250, -EBADMSG},
        {"", 0, 1, -EBADMSG},     {long_text, IPC_TEXT_MAX, 2, 0},     {long_text, IPC_TEXT_MAX + 1, 2, -EBADMSG},
        {"", 0, 0, -EPIPE},
    };
    unsigned before = mk_test_descriptors();
    for (size_t i = 0; i < COUNT(rows); i++) {
        send_raw(rows[i].bytes, rows[i].len, rows[i].n_fds);
        assert_int_equal(ipc_receive(pair[1], &got), rows[i].result);
        assert_int_equal(got.n_fds, rows[i].result == 0 ? rows[i].n_fds : 0);
        ipc_close_fds(&got);
        assert_int_equal(mk_test_descriptors(), before);
    }
}

/* Only what the sender can write to, and no socket of its own. */
TEST(logs)
{
    int ends[2];
    unsigned before = mk_test_descriptors();
    assert_int_equal(pipe(ends), 0);
    const struct {
        int fd, result;
    } rows[] = {
        {open("/dev/null", O_WRONLY), 0},
        {open("/dev/null", O_RDONLY), -EBADF},
        {open("/dev/null", O_PATH), -EBADF},
        {dup(ends[1]), 0},
        {dup(ends[0]), -EBADF},
        {dup(pair[0]), -EINVAL},
        {socket(AF_INET, SOCK_DGRAM, 0), -EINVAL},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        int fd = ipc_open_log(rows[i].fd);
        assert_int_equal(fd < 0 ? fd : 0, rows[i].result);
        if (fd >= 0) {
            assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
            assert_false(fcntl(rows[i].fd, F_GETFL) & O_NONBLOCK);
            close(fd);
        }
        close(rows[i].fd);
    }
    close(ends[0]);
    close(ends[1]);
    assert_int_equal(mk_test_descriptors(), before);
}

TEST_FILE(open_pair, close_pair)

// SPDX-License-Identifier: Apache-2.0
/* Listening sockets: real ones, on ports that the system chooses. */
#include "folder.h"

#include <errno.h>
#include <netinet/tcp.h>

#include "net/listen.h"

static const struct mk__listen_options options = {.backlog = 16,
                                                  .defer_seconds = 3,
                                                  .fast_open_queue = 5,
                                                  .send_buffer = 100000,
                                                  .not_sent_lowat = 50000,
                                                  .shared_port = true};

static struct mk__addr address(const char *text)
{
    struct mk__addr addr;
    const char *error;
    assert_int_equal(mk__addr_parse(mk_str_c(text), &addr, &error), 0);
    return addr;
}

static int option_of(int fd, int level, int name)
{
    int value = -1;
    socklen_t len = sizeof(value);
    assert_int_equal(getsockopt(fd, level, name, &value, &len), 0);
    return value;
}

static bool answers(const struct mk__addr *addr)
{
    int fd = socket(addr->sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool connected = connect(fd, &addr->sa, addr->len) == 0;
    close(fd);
    return connected;
}

TEST(options_are_set)
{
    struct mk__addr addr = address("127.0.0.1:0");
    int fd = mk__listen_bind(&addr, &options);
    assert_true(fd >= 0);
    assert_int_not_equal(mk__addr_port(&addr), 0); /* what the system chose */
    assert_false(answers(&addr));
    assert_int_equal(mk__listen_start(fd, &addr, &options), 0);
    assert_true(answers(&addr));
    assert_int_equal(option_of(fd, SOL_SOCKET, SO_REUSEADDR), 1);
    assert_int_equal(option_of(fd, SOL_SOCKET, SO_REUSEPORT), 1);
    assert_int_equal(option_of(fd, IPPROTO_TCP, TCP_NODELAY), 1);
    assert_int_equal(option_of(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT), 3);
    assert_int_equal(option_of(fd, IPPROTO_TCP, TCP_FASTOPEN), 5);
    assert_int_equal(option_of(fd, SOL_SOCKET, SO_SNDBUF), 100000);
    assert_int_equal(option_of(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT), 50000);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
    close(fd);
}

TEST(any_covers_both_families)
{
    struct mk__addr addr = address("*:0");
    int fd = mk__listen_bind(&addr, &options);
    assert_true(fd >= 0);
    assert_int_equal(mk__listen_start(fd, &addr, &options), 0);
    struct mk__addr v4 = address("127.0.0.1:0");
    mk__addr_set_port(&v4, mk__addr_port(&addr));
    assert_true(answers(&v4));
    if (addr.sa.sa_family == AF_INET6)
        assert_int_equal(option_of(fd, IPPROTO_IPV6, IPV6_V6ONLY), 0);
    close(fd);
}

TEST(v6_alone)
{
    struct mk__addr addr = address("[::1]:0");
    int fd = mk__listen_bind(&addr, &options);
    if (fd == -EADDRNOTAVAIL || fd == -EAFNOSUPPORT)
        skip();
    assert_true(fd >= 0);
    assert_int_equal(option_of(fd, IPPROTO_IPV6, IPV6_V6ONLY), 1);
    close(fd);
}

TEST(ports_are_shared_only_on_request)
{
    struct mk__listen_options alone = options;
    struct mk__addr addr = address("127.0.0.1:0");
    int first = mk__listen_bind(&addr, &options);
    assert_int_equal(mk__listen_start(first, &addr, &options), 0);
    int second = mk__listen_bind(&addr, &options);
    assert_true(second >= 0);
    alone.shared_port = false;
    assert_int_equal(mk__listen_bind(&addr, &alone), -EADDRINUSE);
    close(first);
    close(second);
}

static int connect_to(const struct mk__addr *addr)
{
    int fd = socket(addr->sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, &addr->sa, addr->len), 0);
    return fd;
}

static int count_queued(int fd)
{
    int n = 0, accepted;
    while ((accepted = accept(fd, NULL, NULL)) >= 0) {
        close(accepted);
        n++;
    }
    return n;
}

TEST(a_retired_socket_keeps_its_queue)
{
    struct mk__listen_options plain = {.backlog = 16, .shared_port = true};
    struct mk__addr addr = address("127.0.0.1:1"), all = address("0.0.0.0:0");
    int next = mk__listen_bind(&all, &plain); /* first: its port is free on all addresses */
    assert_int_equal(mk__listen_start(next, &all, &plain), 0);
    mk__addr_set_port(&addr, mk__addr_port(&all));
    int fd = mk__listen_bind(&addr, &plain);
    assert_int_equal(mk__listen_start(fd, &addr, &plain), 0);
    int queued = connect_to(&addr), err = mk__listen_retire(fd);
    if (err == 0) {
        int later = connect_to(&addr);
        assert_int_equal(count_queued(fd), 1);
        assert_int_equal(count_queued(next), 1);
        close(later);
        close(next);
        assert_false(answers(&addr));
    } else {
        assert_true(err == -ENOPROTOOPT || err == -EPERM); /* an older kernel */
        close(next);
    }
    close(queued);
    close(fd);
}

TEST(foreign_addresses)
{
    struct mk__addr addr = address("192.0.2.1:0"); /* of the documentation, on no machine */
    unsigned before = mk_test_descriptors();
    assert_int_equal(mk__listen_bind(&addr, &options), -EADDRNOTAVAIL);
    assert_int_equal(mk_test_descriptors(), before);
}

TEST(unix_sockets)
{
    char text[600];
    snprintf(text, sizeof(text), "unix:%s", mk_test_path("s"));
    struct mk__addr addr = address(text);
    int fd = mk__listen_bind(&addr, &options);
    assert_true(fd >= 0);
    assert_int_equal(mk__listen_start(fd, &addr, &options), 0);
    assert_true(answers(&addr));
    assert_int_equal(mk__listen_bind(&addr, &options), -EADDRINUSE); /* another server listens there */
    close(fd);
    assert_false(answers(&addr));
    fd = mk__listen_bind(&addr, &options); /* left over from a crash */
    assert_true(fd >= 0);
    assert_int_equal(mk__listen_start(fd, &addr, &options), 0);
    assert_true(answers(&addr));
    close(fd);
}

TEST(files_are_not_replaced)
{
    char text[600];
    struct stat st;
    mk_test_write("file", MK_STR("precious"));
    snprintf(text, sizeof(text), "unix:%s", mk_test_path("file"));
    struct mk__addr addr = address(text);
    assert_int_equal(mk__listen_bind(&addr, &options), -EADDRINUSE);
    assert_int_equal(stat(mk_test_path("file"), &st), 0);
    assert_int_equal(st.st_size, 8);
}

TEST(fast_open_is_looked_up)
{
    FILE *f = fopen("/proc/sys/net/ipv4/tcp_fastopen", "r");
    int value = 0;
    if (f) {
        assert_int_equal(fscanf(f, "%d", &value), 1);
        fclose(f);
    }
    assert_int_equal(mk__listen_has_fast_open(), (value & 2) != 0);
}

TEST_FILE(mk_test_folder_make, mk_test_folder_remove)

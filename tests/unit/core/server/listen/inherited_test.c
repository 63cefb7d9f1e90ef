// SPDX-License-Identifier: Apache-2.0
/* Inherited sockets: which directive gets which, and what happens to the rest. */
#include "folder.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/server.h"

static struct mk_server server; /* only its sockets are looked at */
static struct mk__listen_conf directives[4];
static struct mk__settings settings;

static void set_listen(unsigned n, const char *const *texts)
{
    const char *reason;
    settings = (struct mk__settings){.listen = {directives, n}, .backlog = 16};
    for (unsigned i = 0; i < n; i++) {
        directives[i].text = mk_str_c(texts[i]);
        assert_int_equal(mk__addr_parse(directives[i].text, &directives[i].addr, &reason), 0);
    }
}

static int open_listener(const char *text, struct mk__addr *ret_addr)
{
    const struct mk__listen_options options = {.backlog = 16, .shared_port = true};
    const char *reason;
    assert_int_equal(mk__addr_parse(mk_str_c(text), ret_addr, &reason), 0);
    int fd = mk__listen_bind(ret_addr, &options);
    assert_true(fd >= 0);
    assert_int_equal(mk__listen_start(fd, ret_addr, &options), 0);
    return fd;
}

static struct mk__listener *nth(unsigned n)
{
    struct mk_list *at = server.listeners.open.next;
    while (n--)
        at = at->next;
    return MK_CONTAINER_OF(at, struct mk__listener, node);
}

static void prepare(unsigned workers)
{
    unsigned failed;
    assert_int_equal(mk__listeners_prepare(&server.listeners, &settings, workers, &failed), 0);
}

static bool accepts(const struct mk__addr *addr)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool connects = connect(fd, &addr->sa, addr->len) == 0;
    close(fd);
    return connects;
}

/* The process before died amid a reload that no longer had the socket, and this configuration has it again. */
TEST(a_retired_socket)
{
    struct mk__addr addr;
    char text[32];
    mk__listeners_init(&server.listeners);
    int fd = open_listener("127.0.0.1:0", &addr);
    snprintf(text, sizeof(text), "127.0.0.1:%u", mk__addr_port(&addr));
    if (mk__listen_retire(fd) < 0)
        skip();
    assert_false(accepts(&addr));
    set_listen(1, (const char *[]){text});
    assert_int_equal(mk_server_inherit(&server, fd, true), 0);
    prepare(1);
    mk__listeners_commit(&server.listeners, &settings);
    assert_true(accepts(&addr));
    mk__listeners_release(&server.listeners);
}

TEST(port_0_leaves_what_is_named)
{
    struct mk__addr one, two;
    char text[32];
    mk__listeners_init(&server.listeners);
    unsigned before = mk_test_descriptors();
    int first = open_listener("127.0.0.1:0", &one), second = open_listener("127.0.0.1:0", &two);
    snprintf(text, sizeof(text), "127.0.0.1:%u", mk__addr_port(&one));
    set_listen(2, (const char *[]){"127.0.0.1:0", text});
    assert_int_equal(mk_server_inherit(&server, first, true), 0);
    assert_int_equal(mk_server_inherit(&server, second, false), 0);
    prepare(3);
    assert_int_equal(nth(0)->n, 1);
    assert_int_equal(nth(0)->fds[0], second);
    assert_true(nth(0)->shared); /* with a borrowed socket nothing is opened */
    assert_int_equal(nth(1)->n, 3);
    assert_int_equal(nth(1)->fds[0], first);
    assert_false(nth(1)->shared);
    mk__listeners_commit(&server.listeners, &settings);
    assert_int_equal(nth(0)->owner, MK__LISTENER_EXTERNAL);
    assert_int_equal(nth(1)->owner, MK__LISTENER_OWNED);
    mk__listeners_release(&server.listeners);
    assert_int_equal(mk_test_descriptors(), before);
}

TEST(all_addresses)
{
    struct mk__addr one;
    char text[32];
    mk__listeners_init(&server.listeners);
    int fd = open_listener("*:0", &one);
    snprintf(text, sizeof(text), "%u", mk__addr_port(&one));
    set_listen(1, (const char *[]){text});
    assert_int_equal(mk_server_inherit(&server, fd, true), 0);
    prepare(1);
    assert_int_equal(nth(0)->fds[0], fd);
    assert_true(nth(0)->addr.any || nth(0)->addr.sa.sa_family == AF_INET);
    mk__listeners_cancel(&server.listeners);
    assert_true(fcntl(fd, F_GETFD) < 0);
}

/* A start that fails removes no path, a server that ends removes its own, and not those of others. */
TEST(paths)
{
    struct mk__addr one;
    char text[600];
    snprintf(text, sizeof(text), "unix:%s", mk_test_path("s"));
    set_listen(1, (const char *[]){text});
    for (int kind = 0; kind < 4; kind++) {
        mk__listeners_init(&server.listeners);
        unlink(mk_test_path("s"));
        assert_int_equal(mk_server_inherit(&server, open_listener(text, &one), kind != 1), 0);
        prepare(2);
        if (kind == 0) {
            mk__listeners_cancel(&server.listeners);
        } else {
            mk__listeners_commit(&server.listeners, &settings);
            if (kind == 2)
                mk_server_hand_over(&server);
            mk__listeners_release(&server.listeners);
        }
        assert_int_equal(access(mk_test_path("s"), F_OK), kind == 3 ? -1 : 0);
    }
}

TEST(what_is_refused)
{
    int file = open("/dev/null", O_RDONLY | O_CLOEXEC), idle = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
        packets = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    mk__listeners_init(&server.listeners);
    assert_int_equal(mk_server_inherit(&server, file, true), -ENOTSOCK);
    assert_int_equal(mk_server_inherit(&server, idle, true), -EINVAL);
    assert_int_equal(mk_server_inherit(&server, packets, true), -EPROTOTYPE);
    assert_int_equal(mk_server_inherit(&server, 999, true), -EBADF);
    assert_true(mk_list_empty(&server.listeners.inherited));
    close(file);
    close(idle);
    close(packets);
}

TEST_FILE(mk_test_folder_make, mk_test_folder_remove)

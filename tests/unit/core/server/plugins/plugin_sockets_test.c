// SPDX-License-Identifier: Apache-2.0
/* Sockets of plugins that one process passes to the next. */
#include "folder.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "server/plugins/plugin_sockets.h"
#include "server/server.h"

static int open_socket(const char *name)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(strlen(mk_test_path(name)) < sizeof(addr.sun_path));
    memcpy(addr.sun_path, mk_test_path(name), strlen(mk_test_path(name)));
    assert_int_equal(bind(fd, (const struct sockaddr *)&addr, sizeof(addr)), 0);
    assert_int_equal(listen(fd, 1), 0);
    return fd;
}

static void count(int fd, bool own, void *ctx)
{
    assert_true(fd >= 0 && own);
    ++*(unsigned *)ctx;
}

static unsigned count_kept(struct mk_server *server)
{
    unsigned n = 0;
    mk_server_each_socket(server, count, &n);
    return n;
}

/* In the order of a process: it takes over, serves, and hands over. */
TEST(from_process_to_process)
{
    struct mk_server *server = mk_server_new();
    unsigned before = mk_test_descriptors();
    int offered = open_socket("a"), unused = open_socket("b");
    mk_socket_offer(offered);
    mk_socket_offer(unused);
    assert_int_equal(mk_socket_take(mk_test_path("c")), -ENOENT);
    int fd = mk_socket_take(mk_test_path("a"));
    assert_true(fd >= 0 && fd != offered);
    assert_int_equal(count_kept(server), 1);
    assert_true(mk_socket_drop(fd)); /* a start that fails leaves the path to the process before */
    close(fd);
    fd = mk_socket_take(mk_test_path("a"));
    assert_int_equal(mk_server_inherit(server, offered, true), 0); /* closes it */
    assert_int_equal(mk_server_inherit(server, unused, true), 0);
    assert_int_equal(mk_test_descriptors(), before + 2);
    mk__plugin_sockets_serve();
    assert_int_equal(mk_socket_take(mk_test_path("b")), -ENOENT); /* it is the server's now */
    int fresh = open_socket("d");
    assert_int_equal(mk_socket_keep(fresh), 0);
    assert_int_equal(count_kept(server), 2);
    assert_false(mk_socket_drop(fresh));
    close(fresh);
    assert_false(mk_socket_is_handed_over());
    mk_server_hand_over(server);
    assert_true(mk_socket_is_handed_over());
    assert_true(mk_socket_drop(fd));
    close(fd);
    assert_int_equal(count_kept(server), 0);
    mk_server_free(server);
    assert_int_equal(access(mk_test_path("a"), F_OK), 0);
}

TEST(sixteen_at_most)
{
    for (int i = 0; i < 16; i++)
        assert_int_equal(mk_socket_keep(1000 + i), 0);
    assert_int_equal(mk_socket_keep(2000), -ENOSPC);
    for (int i = 0; i < 16; i++)
        mk_socket_drop(1000 + i);
    assert_int_equal(mk_socket_keep(2000), 0);
    mk_socket_drop(2000);
}

TEST_FILE(mk_test_folder_make, mk_test_folder_remove)

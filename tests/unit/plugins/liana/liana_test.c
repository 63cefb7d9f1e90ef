// SPDX-License-Identifier: Apache-2.0
/* Plain sockets as a transport: every call on a real pair of them. */
#include "testing.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <monkey/hooks.h>
#include <monkey/plugin.h>

extern const struct mk_plugin mk_plugin_liana;

static const struct mk_transport *transport;
static struct mk_io io;
static int peer;

static int open_pair(void **state)
{
    int pair[2];
    (void)state;
    transport = mk_plugin_liana.interfaces->transport;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
        return -1;
    io = (struct mk_io){.transport = transport, .fd = pair[0]};
    peer = pair[1];
    return 0;
}

static int close_pair(void **state)
{
    (void)state;
    transport->close(&io);
    close(peer);
    return 0;
}

TEST(is_a_plugin, open_pair, close_pair)
{
    assert_int_equal(mk_plugin_liana.abi, MK_PLUGIN_ABI);
    assert_int_equal(mk_plugin_liana.size, sizeof(struct mk_plugin));
    assert_string_equal(mk_plugin_liana.name, "liana");
    assert_string_equal(transport->name, "liana");
    assert_null(mk_plugin_liana.on_content);
}

TEST(reads, open_pair, close_pair)
{
    char to[16];
    assert_int_equal(transport->read(&io, to, sizeof(to)), -EAGAIN);
    assert_int_equal(write(peer, "hello", 5), 5);
    assert_int_equal(transport->read(&io, to, 3), 3);
    assert_memory_equal(to, "hel", 3);
    assert_int_equal(transport->read(&io, to, sizeof(to)), 2);
    shutdown(peer, SHUT_WR);
    assert_int_equal(transport->read(&io, to, sizeof(to)), 0);
    int fd = io.fd;
    io.fd = -1;
    assert_int_equal(transport->read(&io, to, sizeof(to)), -EBADF);
    io.fd = fd;
}

TEST(writes, open_pair, close_pair)
{
    struct iovec vec[] = {{(char[]){"hel"}, 3}, {(char[]){"lo"}, 2}};
    char to[16], block[65536] = "";
    struct iovec much = {block, sizeof(block)};
    ssize_t n;
    assert_int_equal(transport->write(&io, vec, 2, MK_IO_MORE), 5);
    assert_int_equal(read(peer, to, sizeof(to)), 5);
    assert_memory_equal(to, "hello", 5);
    while ((n = transport->write(&io, &much, 1, 0)) > 0)
        ;
    assert_int_equal(n, -EAGAIN);
    close(peer);
    peer = -1;
    signal(SIGPIPE, SIG_DFL);
    assert_int_equal(transport->write(&io, vec, 2, 0), -EPIPE); /* and no signal */
}

TEST(sends_files, open_pair, close_pair)
{
    char name[] = "/tmp/mk-liana-XXXXXX", to[16];
    int fd = mkstemp(name);
    unlink(name);
    assert_int_equal(write(fd, "0123456789", 10), 10);
    assert_int_equal(transport->sendfile(&io, fd, 3, 4), 4);
    assert_int_equal(read(peer, to, sizeof(to)), 4);
    assert_memory_equal(to, "3456", 4);
    assert_int_equal(lseek(fd, 0, SEEK_CUR), 10); /* the position of the file is not used */
    assert_int_equal(transport->sendfile(&io, fd, 8, 100), 2);
    assert_int_equal(transport->sendfile(&io, fd, 10, 100), 0);
    assert_int_equal(transport->sendfile(&io, -1, 0, 1), -EBADF);
    close(fd);
}

TEST(shuts_its_side, open_pair, close_pair)
{
    char to[16];
    assert_int_equal(transport->shutdown(&io), 0);
    assert_int_equal(read(peer, to, sizeof(to)), 0);
    assert_int_equal(write(peer, "late", 4), 4);
    assert_int_equal(transport->read(&io, to, sizeof(to)), 4); /* reading continues */
    int fd = io.fd;
    io.fd = -1;
    assert_int_equal(transport->shutdown(&io), -EBADF);
    io.fd = fd;
}

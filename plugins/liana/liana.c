// SPDX-License-Identifier: Apache-2.0
/*
 * liana: plain sockets, the transport of connections without TLS, and an example for authors of transports.
 */
#include <monkey/hooks.h>
#include <monkey/plugin.h>

#include <assert.h>
#include <errno.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

static MK_HOT ssize_t read_socket(struct mk_io *io, void *to, size_t size)
{
    ssize_t n = recv(io->fd, to, size, 0);
    return n < 0 ? -errno : n;
}

static MK_HOT ssize_t write_socket(struct mk_io *io, const struct iovec *vec, int n, unsigned flags)
{
    assert(n > 0);
    /* sendmsg() does not change the vector, although its type is not const */
    struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)vec, .msg_iovlen = (size_t)n};
    int how = MSG_NOSIGNAL | (flags & MK_IO_MORE ? MSG_MORE : 0);
    /* for one piece, send() is cheaper: the kernel has no message and no vector to copy */
    ssize_t sent = n == 1 ? send(io->fd, vec->iov_base, vec->iov_len, how) : sendmsg(io->fd, &message, how);
    return sent < 0 ? -errno : sent;
}

static ssize_t send_file(struct mk_io *io, int file_fd, uint64_t offset, size_t size)
{
    off_t at = (off_t)offset;
    ssize_t n = sendfile(io->fd, file_fd, &at, size);
    return n < 0 ? -errno : n;
}

static int shutdown_socket(struct mk_io *io)
{
    return shutdown(io->fd, SHUT_WR) < 0 ? -errno : 0;
}

static void close_socket(struct mk_io *io)
{
    close(io->fd);
}

static const struct mk_transport plain_transport = {
    .name = "liana",
    .read = read_socket,
    .write = write_socket,
    .sendfile = send_file,
    .shutdown = shutdown_socket,
    .close = close_socket,
};

static const struct mk_plugin_interfaces interfaces = {.transport = &plain_transport};

MK_PLUGIN(liana) = {
    MK_PLUGIN_HEAD("liana", "2.0.0", "plain sockets, for connections without TLS"),
    .interfaces = &interfaces,
};

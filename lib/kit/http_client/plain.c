// SPDX-License-Identifier: Apache-2.0
/*
 * Carries the bytes of connections that plugins open without TLS: mk_transport_plain.
 */
#include <monkey/kit/http_client.h>

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

static int connect_plain(struct mk_io *io, struct mk_worker *worker, struct mk_transport_client *client)
{
    (void)io, (void)worker, (void)client;
    return 0;
}

static int return_done(struct mk_io *io)
{
    (void)io;
    return 0;
}

static ssize_t read_plain(struct mk_io *io, void *to, size_t size)
{
    ssize_t n = recv(io->fd, to, size, 0);
    return n < 0 ? -errno : n;
}

static ssize_t write_plain(struct mk_io *io, const struct iovec *vec, int n, unsigned flags)
{
    int more = flags & MK_IO_MORE ? MSG_MORE : 0;
    /* sendmsg() costs more, and does not change the vector, although its type is not const */
    const struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)vec, .msg_iovlen = (size_t)n};
    ssize_t sent = n == 1 ? send(io->fd, vec->iov_base, vec->iov_len, MSG_NOSIGNAL | more)
                          : sendmsg(io->fd, &message, MSG_NOSIGNAL | more);
    return sent < 0 ? -errno : sent;
}

static int shutdown_plain(struct mk_io *io)
{
    return shutdown(io->fd, SHUT_WR) < 0 ? -errno : 0;
}

static void close_plain(struct mk_io *io)
{
    close(io->fd);
}

const struct mk_transport mk_transport_plain = {
    .name = "plain",
    .connect = connect_plain,
    .handshake = return_done,
    .read = read_plain,
    .write = write_plain,
    .flush = return_done,
    .shutdown = shutdown_plain,
    .close = close_plain,
};

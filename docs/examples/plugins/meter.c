// SPDX-License-Identifier: Apache-2.0
/*
 * meter: a transport that wraps liana, the plain sockets, and counts what goes through each connection. One that
 * encrypts is made in the same way.
 *
 *     [PLUGINS]
 *         Load liana ./meter.so static
 *
 *     [SERVER]
 *         Listen 127.0.0.1:2001 meter
 */
#include <monkey/hooks.h>
#include <monkey/plugin.h>

#include <errno.h>
#include <stdlib.h>

extern const struct mk_plugin mk_plugin_liana;

/* Of one connection: it hangs at its mk_io from open to close. */
struct count {
    uint64_t in, out;
};

static const struct mk_transport *below(void)
{
    return mk_plugin_liana.interfaces->transport;
}

static int open_connection(struct mk_io *io, struct mk_worker *worker)
{
    (void)worker;
    io->state = calloc(1, sizeof(struct count));
    return io->state ? 0 : -ENOMEM;
}

static ssize_t note_in(struct mk_io *io, ssize_t n)
{
    struct count *count = io->state;
    if (n > 0)
        count->in += (uint64_t)n;
    return n;
}

static ssize_t note_out(struct mk_io *io, ssize_t n)
{
    struct count *count = io->state;
    if (n > 0)
        count->out += (uint64_t)n;
    return n;
}

static ssize_t read_bytes(struct mk_io *io, void *to, size_t size)
{
    return note_in(io, below()->read(io, to, size));
}

static ssize_t write_bytes(struct mk_io *io, const struct iovec *vec, int n, unsigned flags)
{
    return note_out(io, below()->write(io, vec, n, flags));
}

static ssize_t send_file(struct mk_io *io, int file_fd, uint64_t offset, size_t size)
{
    return note_out(io, below()->sendfile(io, file_fd, offset, size));
}

static int end_our_side(struct mk_io *io)
{
    return below()->shutdown(io);
}

/* Also of a connection that could not be opened. */
static void close_connection(struct mk_io *io)
{
    const struct count *count = io->state;
    if (count)
        mk_log_info("meter: %llu bytes in, %llu bytes out", (unsigned long long)count->in,
                    (unsigned long long)count->out);
    free(io->state);
    below()->close(io);
}

static const struct mk_transport metered = {
    .name = "meter",
    .open = open_connection,
    .read = read_bytes,
    .write = write_bytes,
    .sendfile = send_file,
    .shutdown = end_our_side,
    .close = close_connection,
};

static const struct mk_plugin_interfaces interfaces = {.transport = &metered};

MK_PLUGIN(meter) = {
    MK_PLUGIN_HEAD("meter", "1.0", "counts the bytes of connections"),
    .interfaces = &interfaces,
};

// SPDX-License-Identifier: Apache-2.0
/*
 * How bytes reach a client: the calls that a transport plugin provides. The core never touches a
 * connection's descriptor in any other way, so that plain sockets and TLS are exchanged without it noticing.
 *
 * Every call is non-blocking and comes from the worker that owns the connection. -EAGAIN means: tell me
 * when the descriptor is ready (edge-triggered: a transport must go on until it sees EAGAIN itself, or say
 * by a short count that nothing more is there).
 */
#ifndef MONKEY_TRANSPORT_H
#define MONKEY_TRANSPORT_H

#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "status.h"

struct mk_transport;
struct mk__listening;

struct mk_io {
    const struct mk_transport *transport;
    void *state; /* the transport's own */
    int fd;
    const struct mk__listening *listening; /* by which it came; the server's */
};

/* More follows at once: hold the last segment back. */
enum { MK_IO_MORE = 1 };

struct mk_transport {
    const char *name;
    /* A connection was accepted. 0 or -errno (it is closed then). May be NULL. */
    int (*open)(struct mk_io *io);
    /* Bytes read; 0 at the end of the client's bytes; -errno. */
    ssize_t (*read)(struct mk_io *io, void *to, size_t size);
    /* Bytes written (perhaps fewer than given); -errno. */
    ssize_t (*write)(struct mk_io *io, const struct iovec *vec, int n, unsigned flags);
    /* The same from a file; 0 when the file is shorter than that. */
    ssize_t (*sendfile)(struct mk_io *io, int file_fd, uint64_t offset, size_t size);
    /* Says that no more bytes will come; reading goes on. */
    int (*shutdown)(struct mk_io *io);
    /* Closes the descriptor and frees the state. */
    void (*close)(struct mk_io *io);
};

#endif

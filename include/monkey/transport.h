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
#include "str.h"

struct mk_transport;
struct mk_worker;
struct mk__listener;

struct mk_io {
    const struct mk_transport *transport;
    void *state; /* the transport's own */
    int fd;
    const struct mk__listener *listener; /* by which it came; the server's */
};

/* More follows at once: hold the last segment back. */
enum { MK_IO_MORE = 1 };

/* What is known of a connection that others cannot read. Empty where it does not apply; lives as long as the call. */
struct mk_tls_info {
    struct mk_str version, cipher; /* "TLSv1.3", "TLS_AES_128_GCM_SHA256" */
    struct mk_str server_name;     /* that the client asked for (SNI) */
    struct mk_str client;          /* the subject of a client certificate that was verified, by RFC 4514 */
};

struct mk_transport {
    const char *name;
    /*
     * A connection was accepted, for this worker under the generation that is in use there; the connection may outlive
     * that. 0 or -errno (it is closed then). May be NULL.
     */
    int (*open)(struct mk_io *io, struct mk_worker *worker);
    /*
     * What must go to and fro before the first byte. Called until it is done; -EAGAIN: again when bytes have come;
     * -EINPROGRESS: when the descriptor is writable; any other -errno: the connection is of no use. May be NULL.
     */
    int (*handshake)(struct mk_io *io);
    /* The protocol that the handshake has settled on, by its ALPN name ("h2"); else empty. May be NULL. */
    struct mk_str (*protocol)(const struct mk_io *io);
    /* Of a connection that others cannot read; -ENOENT: this one is not. NULL: none is. */
    int (*tls_info)(const struct mk_io *io, struct mk_tls_info *ret);
    /* Bytes read; 0 at the end of the client's bytes; -errno. */
    ssize_t (*read)(struct mk_io *io, void *to, size_t size);
    /* Bytes written (perhaps fewer than given); -errno. */
    ssize_t (*write)(struct mk_io *io, const struct iovec *vec, int n, unsigned flags);
    /* The same from a file; 0 when the file is shorter than that. */
    ssize_t (*sendfile)(struct mk_io *io, int file_fd, uint64_t offset, size_t size);
    /*
     * Sends what was counted as written and is still held here: 0; -EAGAIN: when the descriptor is writable; -errno.
     * Called when a connection has nothing more to write for now. NULL: nothing is ever held.
     */
    int (*flush)(struct mk_io *io);
    /* Says that no more bytes will come; reading goes on. */
    int (*shutdown)(struct mk_io *io);
    /*
     * Says that no more bytes will come by a message of its own, where the end of the descriptor alone does not say
     * that nothing is missing. What the socket does not take is sent by flush(). May be called more than once. May be
     * NULL.
     */
    void (*close_notify)(struct mk_io *io);
    /* Closes the descriptor and frees the state. */
    void (*close)(struct mk_io *io);
};

#endif

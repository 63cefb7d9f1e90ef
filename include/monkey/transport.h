// SPDX-License-Identifier: Apache-2.0
/*
 * A transport carries the bytes of connections: plain sockets (liana), TLS. A plugin provides one as a table of
 * functions. The server reads and writes a connection through them only.
 *
 * All functions are called in the thread of the connection's worker and must not block. One that returns -EAGAIN is
 * called again when the descriptor is ready. Readiness is edge-triggered: before a transport waits, it must have seen
 * EAGAIN from the descriptor itself; a count that is shorter than asked for tells the server that nothing more is
 * there now.
 */
#ifndef MONKEY_TRANSPORT_H
#define MONKEY_TRANSPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "address.h"
#include "log.h"
#include "status.h"
#include "str.h"

MK_C_BEGIN

struct mk_host;
struct mk_transport;
struct mk_worker;

/* A connection, as its transport sees it. Lives from open() to close(). */
struct mk_io {
    const struct mk_transport *transport;
    void *state; /* the transport's own; NULL before open() */
    int fd;
    const void *listener; /* that accepted it; for the server only */
};

/* A flag of write(): more follows at once, so that a segment that is not full may wait for it. */
enum { MK_IO_MORE = 1 };

/* Describes an encrypted connection. A string is empty where it does not apply, and valid until the callback returns.
 */
struct mk_tls_info {
    struct mk_str version, cipher; /* "TLSv1.3", "TLS_AES_128_GCM_SHA256" */
    struct mk_str server_name;     /* the name that the client asked for (SNI) */
    struct mk_str client;          /* the subject of a verified client certificate, as RFC 4514 writes it */
};

struct mk_transport {
    const char *name;
    /*
     * Prepares a connection that was accepted for this worker, under the generation in use there. The connection may
     * outlive the generation, and even `stop` of the plugin, if a reload removes that: it holds what it needs of the
     * plugin's states itself. May be NULL.
     * Returns 0 or -errno (the server calls close()).
     */
    int (*open)(struct mk_io *io, struct mk_worker *worker);
    /*
     * Continues the handshake. May be NULL.
     * Returns 0 (done), -EAGAIN (call again when the descriptor is readable), -EINPROGRESS (call again when it is
     * writable) or another -errno (the connection is closed).
     */
    int (*handshake)(struct mk_io *io);
    /* Returns the ALPN name of the protocol that the handshake has chosen ("h2"), or an empty string. May be NULL. */
    struct mk_str (*protocol)(const struct mk_io *io);
    /* Describes an encrypted connection. Returns 0, or -ENOENT (this one is not encrypted). NULL: none is. */
    int (*tls_info)(const struct mk_io *io, struct mk_tls_info *ret);
    /* Reads bytes. Returns their count, 0 (the client has ended its side) or -errno. */
    ssize_t (*read)(struct mk_io *io, void *to, size_t size);
    /* Writes bytes; `flags`: MK_IO_MORE. Returns their count, which may be less than given, or -errno. */
    ssize_t (*write)(struct mk_io *io, const struct iovec *vec, int n, unsigned flags);
    /* Writes bytes of a file. Returns their count, 0 (the file ends at `offset` or before) or -errno. */
    ssize_t (*sendfile)(struct mk_io *io, int file_fd, uint64_t offset, size_t size);
    /*
     * Sends bytes that the transport has counted as written and still holds. Is called when the connection has nothing
     * more to write for now. NULL: the transport never holds bytes.
     * Returns 0 (it holds none), -EAGAIN (call again when the descriptor is writable) or another -errno.
     */
    int (*flush)(struct mk_io *io);
    /* Ends the server's side, as shutdown(2) with SHUT_WR; reading continues. Returns 0 or -errno. */
    int (*shutdown)(struct mk_io *io);
    /*
     * Tells the client by a message (close_notify of TLS) that no more bytes will come, where the end of the TCP
     * connection alone does not prove that. flush() sends what the socket does not take. May be called more than once.
     * May be NULL.
     */
    void (*close_notify)(struct mk_io *io);
    /* Closes the descriptor and frees the state, also after an open() that failed. */
    void (*close)(struct mk_io *io);
    /*
     * Returns true if clients of this host are asked for a certificate in the handshake. From generation_check on, in
     * the thread of the configuration. NULL: never.
     */
    bool (*asks_certificate)(const struct mk_host *host);
};

/*
 * Writes a line to the error log as mk_log(), and behind the message peer and listener: ", peer: 192.0.2.7, listener:
 * 0.0.0.0:443". `peer` NULL: asks the system. The message is cut at 559 bytes. For lines about connections
 * that are closed or refused. Builds for small devices leave it out.
 */
MK_API void mk_io_log(const struct mk_io *io, const struct mk_address *peer, enum mk_log_level level,
                      const char *format, ...) MK_PRINTF(4, 5);

MK_C_END

#endif

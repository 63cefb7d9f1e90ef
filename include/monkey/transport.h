// SPDX-License-Identifier: Apache-2.0
/*
 * A transport carries the bytes of connections: plain sockets (liana), TLS. A plugin provides one as a table of
 * functions. The server reads and writes a connection through them only.
 *
 * All functions are called in the thread of the connection's worker and must not block, except for those of a client's
 * settings. One that returns -EAGAIN is called again when the descriptor is ready. Readiness is edge-triggered: before
 * a transport waits, it must have seen EAGAIN from the descriptor itself; a count that is shorter than asked for tells
 * the caller that nothing more is there now.
 *
 * A plugin opens its own connections through a transport, too (mk_generation_transport() of <monkey/plugin.h>):
 *
 *     host_start    client_open(&conf, &client, ...): the settings, once
 *     a request     mk_dial_start() ─► the descriptor ─► connect(&io, worker, client) ─► handshake() until it returns 0
 *                   ─► write(), flush() when nothing more is to be written for now, read() ─► close_notify(), close()
 *     host_stop     client_close(client): open connections continue
 */
#ifndef MONKEY_TRANSPORT_H
#define MONKEY_TRANSPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/address.h"
#include "base/buf.h"
#include "base/str.h"
#include "log.h"
#include "status.h"

MK_C_BEGIN

struct mk_host;
struct mk_transport;
struct mk_transport_client; /* the settings of connections to a server, of its transport: client_open() */
struct mk_worker;

/* A connection, as its transport sees it. Lives from open() or connect() to close(). */
struct mk_io {
    const struct mk_transport *transport;
    void *state; /* the transport's own; NULL before open() and connect() */
    int fd;
    bool has_end; /* read() has found the end or an error behind bytes: the next call returns it, without an event */
    const void *listener; /* that accepted it, for the server only; NULL: connect() has opened it */
};

/* A flag of write(): more follows at once, so that a segment that is not full may wait for it. */
enum { MK_IO_MORE = 1 };

/* Describes an encrypted connection. A string is empty where it does not apply, and valid until the callback returns.
 */
struct mk_tls_info {
    struct mk_str version, cipher; /* "TLSv1.3", "TLS_AES_128_GCM_SHA256" */
    struct mk_str server_name;     /* the name that the client asked for (SNI); of connect(): that of its settings */
    struct mk_str client;          /* the subject of a verified client certificate, as RFC 4514 writes it */
};

/* What client_open() makes the settings of: all zeros but for the name verify the server with the system's CAs. */
struct mk_transport_client_conf {
    /*
     * The name or address that the certificate of the server must cover; brackets around an address and a last dot are
     * ignored. A name is sent as SNI (RFC 6066 section 3), an address is not. May be empty with skip_verify.
     */
    struct mk_str server_name;
    struct mk_str ca_file; /* a PEM file of the authorities to trust, by its absolute path; empty: the system's */
    /* The own certificate, with intermediate ones, and its key: PEM files, by absolute paths. Both or none. */
    struct mk_str certificate, key;
    const struct mk_str *protocols; /* to offer (ALPN, RFC 7301), the preferred one first: "http/1.1" */
    unsigned n_protocols;           /* 0: offer none */
    bool skip_verify;               /* accept any certificate */
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
    /*
     * Reads bytes. Returns their count, 0 (the peer has ended its side) or -errno. On a connection that connect() has
     * opened, 0 means that the peer has said so, where the transport has a message for it (close_notify of TLS), and
     * -ECONNRESET that the connection has ended without: what was read may lack its end (RFC 9112 section 9.8). There
     * the caller reads until -EAGAIN, 0 or another error: an end that has come with bytes is not announced again.
     */
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

    /*
     * Makes the settings of connections to a server: reads and checks the files, which are read again when they change
     * (<monkey/kit/watched.h>); if they cannot be used then, the log has the reason, and the former state stays. Only
     * in generation_start and host_start; may block. Copies what `conf` has. NULL: the transport has no settings.
     * Returns 0, -EINVAL or -ENOMEM. With -EINVAL `error` has a sentence without a full stop, and `*ret_field` the
     * offset of the field that is wrong in the struct.
     */
    int (*client_open)(const struct mk_transport_client_conf *conf, struct mk_transport_client **ret, size_t *ret_field,
                       struct mk_buf *error);
    /*
     * Releases the settings: no further connection is opened with them. Those that are open, and handshakes under way,
     * hold what they need, so they may outlive the generation, `stop` of the plugin that opened them and the
     * transport's plugin. In generation_stop and host_stop, or after a start that failed; may block. `client` may be
     * NULL.
     */
    void (*client_close)(struct mk_transport_client *client);
    /*
     * Prepares a connection that the caller has dialed (mk_dial_start()): `io->transport` and `io->fd` are set, and the
     * descriptor belongs to it. Then handshake() is called at once, and again as it says; the caller limits the time,
     * and may close() at any moment, at the latest in worker_stop. Bytes that the peer sends before its handshake are
     * never application data. The worker's generation has the transport's plugin; the connection does not hold it, and
     * takes its memory from mk_worker_account(). Several workers may use one `client` at once: they share the sessions
     * that are resumed. NULL: there is nothing to prepare, unless `open` is not NULL: then the transport opens no
     * connections.
     * Returns 0 or -errno (the caller calls close()).
     */
    int (*connect)(struct mk_io *io, struct mk_worker *worker, struct mk_transport_client *client);
    /*
     * Appends a phrase for people why handshake(), read() or write() of a connection that connect() has opened has
     * returned `err`: "the certificate of the server has expired". Printable ASCII of at most 400 bytes, which may have
     * quotation marks, but nothing that the peer has sent, so that it may appear in logs and, as a string (RFC 8941
     * section 3.3.3), in headers. Before close(). May be NULL.
     * Returns the error type for Proxy-Status (RFC 9209 section 2.3), "tls_certificate_error"; always valid.
     */
    const char *(*describe_error)(const struct mk_io *io, int err, struct mk_buf *out);
};

/*
 * Writes a line to the error log as mk_log(), and after the message peer and listener: ", peer: 192.0.2.7, listener:
 * 0.0.0.0:443". `peer` NULL: asks the system. The message is cut at 559 bytes. For lines about connections
 * that are closed or refused.
 */
MK_API void mk_io_log(const struct mk_io *io, const struct mk_address *peer, enum mk_log_level level,
                      const char *format, ...) MK_PRINTF(4, 5);

MK_C_END

#endif

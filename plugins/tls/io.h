// SPDX-License-Identifier: Apache-2.0
/*
 * Reads and writes application data for mk_transport: in records, or plain if the client speaks plain HTTP. After the
 * handshake, in the thread of the connection's worker.
 */
#ifndef TLS_IO_H
#define TLS_IO_H

#include "tls_conn.h"

#include <sys/uio.h>

/* These return as the functions of mk_transport. */
ssize_t io_read(struct mk_io *io, void *to, size_t size);
/* Bytes that are counted as written may be held; flush() of the transport sends them. */
ssize_t io_write(struct mk_io *io, const struct iovec *vec, int n, unsigned flags);
ssize_t io_send_file(struct mk_io *io, int file_fd, uint64_t offset, size_t size);

#endif

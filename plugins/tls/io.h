// SPDX-License-Identifier: Apache-2.0
/*
 * What an application reads and writes, as mk_transport has it: by way of records, or as it is where the client speaks
 * in the clear. After the handshake, in the thread of the connection's worker.
 */
#ifndef TLS_IO_H
#define TLS_IO_H

#include "tls_conn.h"

#include <sys/uio.h>

ssize_t io_read(struct mk_io *io, void *to, size_t size);
/* What is counted as written may be held by us; flush() sends it. */
ssize_t io_write(struct mk_io *io, const struct iovec *vec, int n, unsigned flags);
ssize_t io_send_file(struct mk_io *io, int file_fd, uint64_t offset, size_t size);

#endif

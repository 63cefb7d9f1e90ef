// SPDX-License-Identifier: Apache-2.0
/*
 * Encryption by the kernel (kTLS): finds out whether the kernel supports it, and writes for connections that use it,
 * where libssl uses the socket itself.
 */
#ifndef TLS_KTLS_H
#define TLS_KTLS_H

#include "tls_conn.h"

/* Asks the kernel for kTLS. Returns 0 or an errno. */
int ktls_probe(void);
/* Returns true if that result of ktls_probe() means that kTLS is supported. */
bool ktls_is_supported(int answer);
/* Returns the option for SSL_CTX_set_options(); 0 if kTLS is not wanted or not supported. Any thread. */
uint64_t ktls_option(bool wanted);

/* As write and sendfile of mk_transport. */
ssize_t ktls_write(struct tls_conn *conn, const struct iovec *vec, int n);
ssize_t ktls_sendfile(struct tls_conn *conn, int file_fd, uint64_t offset, size_t size);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * Encryption by the kernel (kTLS): whether there is any, and the calls of a connection that may use it, where libssl
 * has the socket for itself.
 */
#ifndef TLS_KTLS_H
#define TLS_KTLS_H

#include "tls_conn.h"

/* What asking for it said: 0 or an errno. */
int ktls_probe(void);
/* Is that the answer of a kernel that can? */
bool ktls_is_supported(int answer);
/* For SSL_CTX_set_options(): 0 where it is not wanted, or cannot. */
uint64_t ktls_option(bool wanted);

ssize_t ktls_write(struct tls_conn *s, const struct iovec *vec, int n);
ssize_t ktls_sendfile(struct tls_conn *s, int file_fd, uint64_t offset, size_t size);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * Reads a host's files into its SSL_CTX: certificates with keys, chains and OCSP responses, and client authorities.
 */
#ifndef TLS_CERTIFICATES_H
#define TLS_CERTIFICATES_H

#include "tls_host.h"

/* Reads all certificates of the host. Returns 0, -EINVAL (errors were reported) or -ENOMEM. */
int certificates_read(struct tls_host *tls_host, struct mk_host *host);
/* Reads ClientCA, and adds the digests of its certificates to `ret_bytes`. Returns as certificates_read(). */
int certificates_read_authorities(struct tls_host *tls_host, struct mk_host *host, struct mk_buf *ret_bytes);

#endif

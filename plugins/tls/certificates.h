// SPDX-License-Identifier: Apache-2.0
/*
 * Reads a host's files into an SSL_CTX: certificates with keys, chains and OCSP responses, and client authorities.
 */
#ifndef TLS_CERTIFICATES_H
#define TLS_CERTIFICATES_H

#include "tls_host.h"

/* A load of a host's files. */
struct tls_load {
    const struct tls_host *tls_host;
    SSL_CTX *ctx;
    struct tls_credentials *credentials; /* of `ctx` */
    struct mk_buf *message; /* for errors, if the server runs, and warnings are logged; NULL: at the start, when both
                               are reported with the lines of the configuration */
};

/* Reads all certificates of the host. Returns 0, -EINVAL (errors were reported) or -ENOMEM. */
int certificates_read(const struct tls_load *load);
/* Reads ClientCA, and adds the digests of its certificates to `ret_bytes`. Returns as certificates_read(). */
int certificates_read_authorities(const struct tls_load *load, struct mk_buf *ret_bytes);

#endif

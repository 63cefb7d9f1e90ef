// SPDX-License-Identifier: Apache-2.0
/*
 * Makes SSL_CTXs: those of hosts, the one for a generation, and those for connections to servers. In the main thread,
 * and again in the thread that watches files.
 */
#ifndef TLS_SSL_CONTEXT_H
#define TLS_SSL_CONTEXT_H

#include "tls_host.h"

/* Returns an SSL_CTX with the settings that all hosts share; NULL without memory. */
SSL_CTX *ssl_context_new(const struct tls_generation *t);
/* Returns an SSL_CTX for connections to a server, which verifies nothing yet; NULL without memory. */
SSL_CTX *ssl_context_new_client(void);

/*
 * Makes the host's SSL_CTX from its files, and again when they change; does nothing if it has no certificate. Returns
 * 0, -EINVAL (errors were reported) or -ENOMEM. Call tls_host_release() in any case.
 */
int ssl_context_open_host(struct tls_host *tls_host);
/* Makes the SSL_CTX of a host that has no certificate, with this one. Returns 0, -EINVAL or -ENOMEM. */
int ssl_context_make_self_signed(struct tls_host *tls_host, X509 *leaf, EVP_PKEY *key);

#endif

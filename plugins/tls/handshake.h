// SPDX-License-Identifier: Apache-2.0
/*
 * Callbacks of libssl during a handshake: they choose host, protocol, ticket key and OCSP response. The generation
 * outlives all handshakes that began under it.
 */
#ifndef TLS_HANDSHAKE_H
#define TLS_HANDSHAKE_H

#include "tls_host.h"

/* Sets the callbacks of an SSL_CTX. Returns 0 or -ENOMEM. */
int handshake_set_callbacks(SSL_CTX *ctx, const struct tls_generation *t);

/* Prepares the process before the first SSL_CTX; cleans up after the last one. Returns 0 or -ENOMEM. */
int handshake_init(void);
void handshake_cleanup(void);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * What libssl asks during a handshake: which host, which protocol, which ticket key, which OCSP response. The
 * generation stays as long as any handshake that began under it.
 */
#ifndef TLS_HANDSHAKE_H
#define TLS_HANDSHAKE_H

#include "tls_host.h"

/* 0 or -ENOMEM. */
int handshake_set_callbacks(SSL_CTX *ctx, struct tls_generation *t);

/* Once for the process, before any context, and after all of them. 0 or -errno. */
int handshake_init(void);
void handshake_cleanup(void);

#endif

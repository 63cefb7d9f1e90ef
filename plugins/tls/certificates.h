// SPDX-License-Identifier: Apache-2.0
/*
 * A host's files into its context: certificates with keys, chains and OCSP responses; the authorities of clients.
 */
#ifndef TLS_CERTIFICATES_H
#define TLS_CERTIFICATES_H

#include "tls_host.h"

/* All certs that the configuration names. 0, -EINVAL after a sentence, -ENOMEM. */
int certificates_read(struct tls_host *tls_host, struct mk_host *host);
/* ClientCA; `ret_bytes` gets what tells these authorities from others. As above. */
int certificates_read_authorities(struct tls_host *tls_host, struct mk_host *host, struct mk_buf *ret_bytes);

#endif

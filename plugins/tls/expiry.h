// SPDX-License-Identifier: Apache-2.0
/*
 * The ends of validity of the hosts' certificates, as counters: what alerts are made of. They are those of the files
 * that are in use, not of a configuration that is only checked or refused.
 */
#ifndef TLS_EXPIRY_H
#define TLS_EXPIRY_H

#include "tls_host.h"

/* Counts the certificates of a generation that begins to serve, in the thread of its first worker. */
void expiry_hold(struct tls_generation *t, const struct mk_worker *worker);
/* Ends that for a host, when it is stopped. Any thread; does nothing if its generation has not served. */
void expiry_release(const struct tls_host *tls_host);
/* Hides the counters of certificates that no generation has, unless it was the last one of the process. Any thread. */
void expiry_hide_unused(void);

/* Sets what the files of a host have now. Any thread; does nothing if no generation holds its certificates. */
void expiry_update(const struct tls_host *tls_host, const struct tls_credentials *credentials);

#endif

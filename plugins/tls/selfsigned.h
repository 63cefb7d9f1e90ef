// SPDX-License-Identifier: Apache-2.0
/*
 * A self-signed certificate for trials, made in memory. No client trusts it, and the key is never written to a file.
 */
#ifndef TLS_SELFSIGNED_H
#define TLS_SELFSIGNED_H

#include <openssl/x509.h>

/*
 * Gets the certificate and key of the process; makes them in the first call. They belong to this file, until
 * selfsigned_stop(). Main thread.
 * Returns 0 or -EIO.
 */
int selfsigned_get(X509 **ret_leaf, EVP_PKEY **ret_key);
void selfsigned_stop(void);

/* Logs its names and SHA-256 fingerprint, once. */
void selfsigned_announce(void);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * A certificate for trials, made in memory: nobody trusts it, and no key is ever written anywhere.
 */
#ifndef TLS_SELFSIGNED_H
#define TLS_SELFSIGNED_H

#include <openssl/x509.h>

/* The process's own, made when it is first asked for; both stay its. 0 or -errno. */
int selfsigned_get(X509 **ret_leaf, EVP_PKEY **ret_key);
void selfsigned_stop(void);

/* Tells the log of it, once: its names, and its SHA-256 fingerprint. */
void selfsigned_announce(void);

#endif

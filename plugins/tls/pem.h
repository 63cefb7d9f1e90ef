// SPDX-License-Identifier: Apache-2.0
/*
 * Certificates and keys as they lie in files. What is wrong with one is a phrase that goes on a sentence about it
 * ("... cannot be read: Permission denied").
 */
#ifndef TLS_PEM_H
#define TLS_PEM_H

#include <monkey/buf.h>

#include <openssl/ssl.h>

#include <stdbool.h>

enum { PEM_BYTES_MAX = 4 * 1024 * 1024 };

/* The bytes of a file, on the heap, for pem_free_file(). */
struct pem_file {
    char *data;
    size_t len;
};

/* `secret`: nobody but owner and group may read it. False with a phrase. */
bool pem_read_file(struct pem_file *file, const char *path, bool secret, struct mk_buf *fault);
/* Wipes and frees it. */
void pem_free_file(struct pem_file *file);

/* What libcrypto says about its last failure, in its own words, behind a colon; empties its queue. */
void pem_add_reason(struct mk_buf *fault);

/* All certificates of a file; NULL with a phrase. */
STACK_OF(X509) * pem_read_certificates(const char *path, struct mk_buf *fault);
/* A private key without a passphrase; NULL with a phrase. */
EVP_PKEY *pem_read_key(const char *path, struct mk_buf *fault);

#endif

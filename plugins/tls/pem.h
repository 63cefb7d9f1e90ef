// SPDX-License-Identifier: Apache-2.0
/*
 * Reads files of certificates and keys. On an error, `fault` gets a phrase for the end of a sentence about the file
 * ("... cannot be read: Permission denied").
 */
#ifndef TLS_PEM_H
#define TLS_PEM_H

#include <monkey/base/file.h>

#include <openssl/ssl.h>

#include <stdbool.h>

enum { PEM_BYTES_MAX = 4 * 1024 * 1024 };

/* The bytes of a file; free them with pem_free_file(). */
struct pem_file {
    struct mk_arena arena;
    struct mk_file_bytes bytes;
};

/* Reads a file. `secret`: its mode must allow only owner and group to read it. Returns false on an error. */
bool pem_read_file(struct pem_file *file, const char *path, bool secret, struct mk_buf *fault);
/* Wipes and frees it. */
void pem_free_file(struct pem_file *file);

/* Adds a colon and the last error text of libcrypto to `fault`; empties the error queue. */
void pem_add_reason(struct mk_buf *fault);

/* Reads all certificates of a PEM file. Returns NULL on an error. */
STACK_OF(X509) * pem_read_certificates(const char *path, struct mk_buf *fault);
/* Reads a private key, without a passphrase, from a PEM file. Returns NULL on an error. */
EVP_PKEY *pem_read_key(const char *path, struct mk_buf *fault);

#endif

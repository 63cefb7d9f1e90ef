// SPDX-License-Identifier: Apache-2.0
/*
 * Certificates and keys as they lie in files. What is wrong with one is a phrase that goes on a sentence about it
 * ("... cannot be read: Permission denied").
 */
#ifndef TLS_FILES_H
#define TLS_FILES_H

#include <monkey/buf.h>

#include <openssl/ssl.h>

#include <stdbool.h>

enum { FILES_BYTES_MAX = 4 * 1024 * 1024 };

/* The bytes of a file, on the heap, for files_forget(). */
struct file {
    char *data;
    size_t len;
};

/* `secret`: nobody but owner and group may read it. False with a phrase. */
bool files_read(struct file *file, const char *path, bool secret, struct mk_buf *fault);
/* Wipes and frees it. */
void files_forget(struct file *file);

/* What libcrypto says about its last failure, in its own words, behind a colon; empties its queue. */
void files_reason(struct mk_buf *fault);

/* All certificates of a file; NULL with a phrase. */
STACK_OF(X509) * files_certificates(const char *path, struct mk_buf *fault);
/* A private key without a passphrase; NULL with a phrase. */
EVP_PKEY *files_key(const char *path, struct mk_buf *fault);

#endif

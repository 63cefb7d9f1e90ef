// SPDX-License-Identifier: Apache-2.0
/*
 * What the packages sha1 and sha256 share: a digest of libcrypto, and its HMAC. Each package has its own copy.
 */
#ifndef DUDA_PACKAGES_SHA_DIGEST_H
#define DUDA_PACKAGES_SHA_DIGEST_H

#include <stdbool.h>
#include <stddef.h>

struct duda_digest;

/* Looks up the digest by its name in libcrypto; before any other function. Returns 0 or -ENOENT. */
int digest_open(const char *name, size_t bytes);

/* The functions of <duda/packages/sha256/sha256.h>. */
int digest_encode(const void *data, size_t len, unsigned char *digest);
struct duda_digest *digest_init(void);
int digest_update(struct duda_digest *d, const void *data, size_t len);
int digest_final(struct duda_digest *d, unsigned char *digest);
void digest_abort(struct duda_digest *d);
int digest_hmac(const void *key, size_t key_len, const void *data, size_t len, unsigned char *digest);
char *digest_hex(const unsigned char *digest, char *text);
bool digest_is_equal(const void *a, const void *b, size_t len);

#endif

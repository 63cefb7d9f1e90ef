// SPDX-License-Identifier: Apache-2.0
/*
 * The package sha256: SHA-256 (FIPS 180-4) and HMAC-SHA-256 (RFC 2104), by libcrypto. It is no hash for passwords,
 * which must be slow: see the package password.
 *
 * All functions are for any thread, and do not keep what they are given. A digest has 32 bytes. Functions that
 * return an int return 0, -EINVAL (a pointer is NULL, a length is negative) or -ENOMEM (libcrypto has no memory); after
 * an error the digest is zeros.
 */
#ifndef DUDA_PACKAGES_SHA256_H
#define DUDA_PACKAGES_SHA256_H

#include "../../package.h"

#ifndef SHA256_DIGEST_LENGTH
#define SHA256_DIGEST_LENGTH 32
#endif

enum { DUDA_SHA256_HEX_BYTES = 2 * SHA256_DIGEST_LENGTH + 1 };

/* The digest of a text that comes in pieces; for one thread at a time. */
struct duda_digest;

struct duda_api_sha256 {
    /* Writes the digest of `len` bytes. */
    int (*encode)(const void *data, unsigned char digest[SHA256_DIGEST_LENGTH], long len);

    /*
     * init() returns the digest of a text in pieces; NULL without memory. update() adds a piece. final() writes the
     * digest and frees `d`; abort() only frees it. update() and final() of NULL return -EINVAL, so that it is enough
     * to check the result of final().
     */
    struct duda_digest *(*init)(void);
    int (*update)(struct duda_digest *d, const void *data, size_t len);
    int (*final)(struct duda_digest *d, unsigned char digest[SHA256_DIGEST_LENGTH]);
    void (*abort)(struct duda_digest *d);

    /* Writes the HMAC of `len` bytes by a key, which may be empty. */
    int (*hmac)(const void *key, size_t key_len, const void *data, size_t len,
                unsigned char digest[SHA256_DIGEST_LENGTH]);
    /* Writes the digest as small hexadecimal digits with a NUL after them. Returns `text`. */
    char *(*hex)(const unsigned char digest[SHA256_DIGEST_LENGTH], char text[DUDA_SHA256_HEX_BYTES]);
    /* Returns whether `len` bytes are equal; how long this takes does not tell where they differ. */
    bool (*is_equal)(const void *a, const void *b, size_t len);
};

DUDA_PACKAGE(struct duda_api_sha256, sha256)

#endif

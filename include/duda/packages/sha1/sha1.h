// SPDX-License-Identifier: Apache-2.0
/*
 * The package sha1: SHA-1 (FIPS 180-4) and HMAC-SHA-1 (RFC 2104), by libcrypto. SHA-1 is for formats that ask for it;
 * where someone could gain by a second text of the same digest, use sha256.
 *
 * All functions are for any thread, and do not keep what they are given. A digest has 20 bytes. Functions that
 * return an int return 0, -EINVAL (a pointer is NULL) or -ENOMEM (libcrypto has no memory); after an error the digest
 * is zeros.
 */
#ifndef DUDA_PACKAGES_SHA1_H
#define DUDA_PACKAGES_SHA1_H

#include "../../package.h"

#ifndef SHA_DIGEST_LENGTH
#define SHA_DIGEST_LENGTH 20
#endif

enum { DUDA_SHA1_HEX_BYTES = 2 * SHA_DIGEST_LENGTH + 1 };

/* The digest of a text that comes in pieces; for one thread at a time. */
struct duda_digest;

struct duda_api_sha1 {
    /* Writes the digest of `len` bytes. */
    int (*encode)(const void *data, unsigned char digest[SHA_DIGEST_LENGTH], unsigned long len);

    /*
     * init() returns the digest of a text in pieces; NULL without memory. update() adds a piece. final() writes the
     * digest and frees `d`; abort() only frees it. update() and final() of NULL return -EINVAL, so that it is enough
     * to check the result of final().
     */
    struct duda_digest *(*init)(void);
    int (*update)(struct duda_digest *d, const void *data, size_t len);
    int (*final)(struct duda_digest *d, unsigned char digest[SHA_DIGEST_LENGTH]);
    void (*abort)(struct duda_digest *d);

    /* Writes the HMAC of `len` bytes by a key, which may be empty. */
    int (*hmac)(const void *key, size_t key_len, const void *data, size_t len, unsigned char digest[SHA_DIGEST_LENGTH]);
    /* Writes the digest as small hexadecimal digits with a NUL after them. Returns `text`. */
    char *(*hex)(const unsigned char digest[SHA_DIGEST_LENGTH], char text[DUDA_SHA1_HEX_BYTES]);
    /* Returns whether `len` bytes are equal; how long this takes does not tell where they differ. */
    bool (*is_equal)(const void *a, const void *b, size_t len);
};

DUDA_PACKAGE(struct duda_api_sha1, sha1)

#endif

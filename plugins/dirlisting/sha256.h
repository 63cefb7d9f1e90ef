// SPDX-License-Identifier: Apache-2.0
/*
 * SHA-256 (FIPS 180-4), for the digests of a Content-Security-Policy. They protect no secret, and linking libcrypto for
 * them would cost each server with listings half a megabyte of private memory.
 */
#ifndef DIRLISTING_SHA256_H
#define DIRLISTING_SHA256_H

#include <monkey/str.h>

enum { SHA256_BYTES = 32 };

/* Writes the digest of `text`. */
void sha256_digest(struct mk_str text, unsigned char ret[SHA256_BYTES]);

#endif

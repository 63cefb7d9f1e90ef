// SPDX-License-Identifier: Apache-2.0
/*
 * The package sha256.
 */
#ifndef DUDA_PACKAGES_SHA256_H
#define DUDA_PACKAGES_SHA256_H

#include "../../package.h"

#ifndef SHA256_DIGEST_LENGTH
#define SHA256_DIGEST_LENGTH 32
#endif

struct duda_api_sha256 {
    /* Writes the 32 bytes of the digest to `digest`. */
    void (*encode)(const unsigned char *data, unsigned char *digest, int len);
};

DUDA_PACKAGE(struct duda_api_sha256, sha256)

#endif

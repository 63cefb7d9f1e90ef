// SPDX-License-Identifier: Apache-2.0
/*
 * The package sha1.
 */
#ifndef DUDA_PACKAGES_SHA1_H
#define DUDA_PACKAGES_SHA1_H

#include "../../package.h"

#ifndef SHA_DIGEST_LENGTH
#define SHA_DIGEST_LENGTH 20
#endif

struct duda_api_sha1 {
    /* Writes the 20 bytes of the digest to `digest`. */
    void (*encode)(const void *data, unsigned char *digest, unsigned long len);
};

DUDA_PACKAGE(struct duda_api_sha1, sha1)

#endif

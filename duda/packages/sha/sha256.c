// SPDX-License-Identifier: Apache-2.0
/*
 * The package sha256 (<duda/packages/sha256/sha256.h>).
 */
#include <duda/packages/sha256/sha256.h>

#include "digest.h"

static int encode_sha256(const void *data, unsigned char digest[SHA256_DIGEST_LENGTH], long len)
{
    return digest_encode(len < 0 ? NULL : data, (size_t)len, digest);
}

static const struct duda_api_sha256 table = {
    .encode = encode_sha256,
    .init = digest_init,
    .update = digest_update,
    .final = digest_final,
    .abort = digest_abort,
    .hmac = digest_hmac,
    .hex = digest_hex,
    .is_equal = digest_is_equal,
};

DUDA_PACKAGE_MAIN_IF(digest_open("SHA256", SHA256_DIGEST_LENGTH) == 0, sha256_package, "sha256", "2.0.0", &table)

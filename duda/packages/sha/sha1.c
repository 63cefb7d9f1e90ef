// SPDX-License-Identifier: Apache-2.0
/*
 * The package sha1 (<duda/packages/sha1/sha1.h>).
 */
#include <duda/packages/sha1/sha1.h>

#include "digest.h"

static int encode_sha1(const void *data, unsigned char digest[SHA_DIGEST_LENGTH], unsigned long len)
{
    return digest_encode(data, len, digest);
}

static const struct duda_api_sha1 table = {
    .encode = encode_sha1,
    .init = digest_init,
    .update = digest_update,
    .final = digest_final,
    .abort = digest_abort,
    .hmac = digest_hmac,
    .hex = digest_hex,
    .is_equal = digest_is_equal,
};

DUDA_PACKAGE_MAIN_IF(digest_open("SHA1", SHA_DIGEST_LENGTH) == 0, sha1_package, "sha1", "2.0.0", &table)

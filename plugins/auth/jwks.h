// SPDX-License-Identifier: Apache-2.0
/*
 * Reads JWK sets (RFC 7517): oct and RSA (RFC 7518), EC P-256 and OKP Ed25519 (RFC 8037). A text that is one key,
 * without "keys", is a set of it.
 */
#ifndef AUTH_JWKS_H
#define AUTH_JWKS_H

#include "key_set.h"

/*
 * Adds the keys of a text that may verify (use, key_ops, alg) to a set. Others are skipped, with a warning in
 * `message`, as is a key that is wrong; private members are not read, with a warning.
 * Returns 0, -EINVAL (not JSON, no "keys", or no key that can be used), -ENOBUFS or -ENOMEM, with a sentence.
 */
int jwks_read(struct key_set *keys, const char *name, struct mk_str text, struct mk_buf *message);

#endif

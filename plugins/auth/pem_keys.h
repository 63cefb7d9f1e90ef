// SPDX-License-Identifier: Apache-2.0
/* Reads public keys and certificates in PEM (RFC 7468). */
#ifndef AUTH_PEM_KEYS_H
#define AUTH_PEM_KEYS_H

#include "key_set.h"

/*
 * Adds all keys of a text to a set. Private keys are refused: they do not belong on a server that only verifies.
 * Returns 0, -EINVAL, -ENOBUFS or -ENOMEM, with sentences in `message`.
 */
int pem_keys_read(struct key_set *keys, const char *name, struct mk_str text, struct mk_buf *message);

#endif

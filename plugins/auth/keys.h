// SPDX-License-Identifier: Apache-2.0
/*
 * Reads sets of keys from files:
 *
 *     Keys FILE      public keys and certificates in PEM, or a JWK set in JSON (RFC 7517)
 *     Secret FILE    a text that is the secret of HS256
 *
 * A file of one kind is never read as the other: a public key, even a damaged one, does not become a secret.
 */
#ifndef AUTH_KEYS_H
#define AUTH_KEYS_H

#include <monkey/buf.h>

#include "key_set.h"

enum { KEYS_FILE_BYTES_MAX = 1 << 20 };

enum keys_kind {
    KEYS_PUBLIC, /* PEM or a JWK set */
    KEYS_SECRET,
};

struct keys_file {
    struct mk_str path; /* with a NUL after it */
    enum keys_kind kind;
};

/*
 * Reads files into a new set. May block. Each key that cannot be used is reported in `message` (a JWK is then skipped,
 * anything else is an error), as sentences with "; " between them and without a full stop. They quote no secret.
 * Returns 0 (`message` has warnings, if anything), -EINVAL or another -errno of reading, or -ENOMEM.
 */
int keys_load(const struct keys_file *files, unsigned n, struct key_set **ret, struct mk_buf *message);
/* Reads the bytes of a file into a set, as keys_load() does. `name` is for messages. */
int keys_read(struct key_set *keys, enum keys_kind kind, const char *name, struct mk_str bytes, struct mk_buf *message);

#endif

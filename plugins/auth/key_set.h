// SPDX-License-Identifier: Apache-2.0
/*
 * Sets of keys that verify tokens:
 *
 *     type of the key                   algorithm
 *     RSA, 2048 to 8192 bits            RS256
 *     EC, P-256                         ES256
 *     OKP, Ed25519                      EdDSA
 *     oct, 32 bytes or more             HS256
 *
 * A set does not change once it is loaded: it is read by any thread, and freed when nothing refers to it.
 */
#ifndef AUTH_KEY_SET_H
#define AUTH_KEY_SET_H

#include <monkey/buf.h>

#include "jws.h"

enum {
    KEY_SET_MAX = 128, /* of a set */
    KEY_SET_RSA_BITS_MIN = 2048,
    KEY_SET_RSA_BITS_MAX = 8192,
    KEY_SET_SECRET_BYTES_MIN = 32, /* RFC 7518 section 3.2 */
    KEY_SET_SECRET_BYTES_MAX = 4096,
    KEY_SET_TRIED_MAX = 4, /* for one token */
    KEY_SET_ID_BYTES = 32,
};

struct key_set;

/* Returns an empty set, or NULL without memory. */
struct key_set *key_set_new(void);
/* Frees a set and wipes its secrets; `keys` may be NULL. */
void key_set_free(struct key_set *keys);

/*
 * Returns the keys that may have signed a token, one after the other; `after` is NULL for the first one. These have the
 * algorithm of the token. If it names a kid and keys of that algorithm have it, only those are returned, else those
 * without a kid. If it names none, all of that algorithm are returned. NULL: no further one.
 */
const struct jws_key *key_set_next(const struct key_set *keys, const struct jws *jws, const struct jws_key *after);

/* Return the number of keys, and of secrets among them. */
unsigned key_set_count(const struct key_set *keys);
unsigned key_set_count_secrets(const struct key_set *keys);
/* Returns KEY_SET_ID_BYTES bytes, which sets of other files or contents do not have; valid as long as the set. */
struct mk_str key_set_id(const struct key_set *keys);

/* ── what readers of files use ── */

/*
 * Adds a key, whose algorithm follows from its type, and takes it over in any case. `kid`, which is copied, has no `.p`
 * if the key has none. Returns 0, or -errno with a phrase in `message`: "is an RSA key of 1024 bits, ...".
 */
int key_set_add(struct key_set *keys, EVP_PKEY *pkey, struct mk_str kid, struct mk_buf *message);
/* Adds a secret, as key_set_add(). */
int key_set_add_secret(struct key_set *keys, struct mk_str secret, struct mk_str kid, struct mk_buf *message);

/* Has the id of the set depend on the bytes of a further file, and on how they are read. Returns 0 or -ENOMEM. */
int key_set_extend_id(struct key_set *keys, unsigned kind, struct mk_str bytes);

/* Begins a sentence about a file, after those that `message` has already. Returns `message`. */
struct mk_buf *key_set_report(struct mk_buf *message, const char *name);

#endif

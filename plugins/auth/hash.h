// SPDX-License-Identifier: Apache-2.0
/*
 * Computes and compares password hashes. Each call takes milliseconds to half a second, and with yescrypt 16 MiB or
 * more: not for a worker's thread. Any other thread, each with its own work space.
 */
#ifndef AUTH_HASH_H
#define AUTH_HASH_H

#include "scheme.h"

/* The longest password; crypt(3) takes no longer one. */
enum { HASH_PASSWORD_MAX = 511 };

struct hash_work; /* about 33 KB */

/* Returns a work space, or NULL without memory. */
struct hash_work *hash_work_new(void);
/* Wipes and frees it; `w` may be NULL. */
void hash_work_free(struct hash_work *w);

/*
 * Returns true if `password` has the hash `stored`, of that scheme. Compares in constant time, and leaves no trace of
 * the password in the work space. A password with a NUL, or a longer one than HASH_PASSWORD_MAX, matches nothing.
 */
bool hash_matches(struct hash_work *w, enum scheme scheme, struct mk_str password, struct mk_str stored);

/*
 * Makes a hash with a random salt; `cost` 0: the default of the scheme. Not for SCHEME_SHA1.
 * Returns the hash, which lives as long as `w` until its next use, or `.p` NULL: the scheme has no such cost, or is not
 * supported by libcrypt.
 */
struct mk_str hash_create(struct hash_work *w, enum scheme scheme, unsigned cost, struct mk_str password);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * The password hashes that users may have in a file, by their prefixes. Pure functions.
 *
 *     $y$j9T$salt$hash          yescrypt      $5$rounds=5000$salt$hash   SHA-256 crypt
 *     $2b$10$salt+hash          bcrypt        $apr1$salt$hash            of Apache, MD5
 *     $6$rounds=5000$salt$hash  SHA-512 crypt {SHA}base64                of the original server, without a salt
 */
#ifndef AUTH_SCHEME_H
#define AUTH_SCHEME_H

#include <monkey/str.h>

enum scheme {
    SCHEME_YESCRYPT,
    SCHEME_BCRYPT,
    SCHEME_SHA512,
    SCHEME_SHA256,
    SCHEME_APR1,
    SCHEME_SHA1,
    SCHEME_COUNT,
};

/*
 * Limits of the cost, because each login costs that much: about half a second of one processor at most. yescrypt:
 * 64 MiB of memory, which is cost 7 of mk_passwd.
 */
enum { SCHEME_HASH_MAX = 255, SCHEME_YESCRYPT_KB_MAX = 65536, SCHEME_BCRYPT_COST_MAX = 13, SCHEME_ROUNDS_MAX = 999999 };

struct scheme_fault {
    size_t at;            /* offset of the mistake in the hash */
    const char *sentence; /* a literal without a full stop */
};

/* Identifies a stored hash, and checks its form and cost. Returns enum scheme, or -EINVAL with `*ret_fault`. */
int scheme_parse(struct mk_str hash, struct scheme_fault *ret_fault);

/* Returns what messages call the scheme, a literal. */
const char *scheme_name(enum scheme scheme);

/* Returns true if `c` is a digit of the base 64 that crypt(5) uses. */
bool scheme_is_digit(char c);

#endif

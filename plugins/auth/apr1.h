// SPDX-License-Identifier: Apache-2.0
/*
 * The `$apr1$` hash of Apache: 1,000 rounds of MD5. Over libcrypto's MD5; pure.
 */
#ifndef AUTH_APR1_H
#define AUTH_APR1_H

#include <monkey/str.h>

enum { APR1_DIGITS = 22, APR1_SALT_MAX = 8 };

/* Writes the digits of a hash, without the prefix and the salt. Returns 0, or -ENOTSUP (libcrypto has no MD5). */
int apr1_compute(struct mk_str password, struct mk_str salt, char to[APR1_DIGITS]);

#endif

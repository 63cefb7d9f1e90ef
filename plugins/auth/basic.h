// SPDX-License-Identifier: Apache-2.0
/*
 * The credentials of Basic authentication (RFC 7617). Pure.
 */
#ifndef AUTH_BASIC_H
#define AUTH_BASIC_H

#include "hash.h"
#include "htpasswd.h"

struct basic_credentials {
    struct mk_str user, password;                              /* in `bytes` */
    char bytes[HTPASSWD_NAME_MAX + 1 + HASH_PASSWORD_MAX + 2]; /* to be wiped; base64 has groups of 3 */
};

enum basic_result {
    BASIC_OK,
    BASIC_NONE,      /* no credentials, or those of another scheme */
    BASIC_MALFORMED, /* not base64, no colon, not UTF-8, control characters, or too long */
};

/* Reads the value of Authorization; `.p` NULL: the request has none. */
enum basic_result basic_read(struct mk_str value, struct basic_credentials *ret);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * Balance Sticky: a cookie names the server that a client had before. Its value is made of a secret and the server's
 * name, so that it neither shows an address nor can be made up for another server.
 */
#ifndef UPSTREAM_STICKY_H
#define UPSTREAM_STICKY_H

#include <monkey/conf.h>
#include <monkey/cookie.h>

enum { STICKY_TOKEN_BYTES = 32, STICKY_SECRET_BYTES_MIN = 16, STICKY_SECRET_BYTES_MAX = 4096 };

/* Parses `NAME [Path=P] [Max-Age=SECONDS] [HttpOnly] [Secure] [SameSite=S]` into a struct mk_cookie; mk_conf_parse_fn.
 */
int sticky_parse_cookie(const struct mk_conf_value *value, void *cookie, struct mk_arena *arena, struct mk_buf *error);

/* Makes a key of the bytes of a secret. Pure. */
void sticky_derive_key(struct mk_str secret, uint64_t key[2]);
/* Reads a secret from a file. Returns 0, -EINVAL (it has too few or too many bytes) or -errno. Blocks. */
int sticky_read_key(const char *path, uint64_t key[2]);
/* Gets the key of groups without a secret, which the process makes once. Returns 0, 1 (it was made now) or -errno. */
int sticky_get_own_key(uint64_t key[2]);

/* Writes the value of the cookie for a server. Pure. */
void sticky_make_token(const uint64_t key[2], struct mk_str group, struct mk_str server, char ret[STICKY_TOKEN_BYTES]);
/* Tells whether a value is that of a server, in a time that does not depend on the bytes. Pure. */
bool sticky_is_token(const char token[STICKY_TOKEN_BYTES], struct mk_str value);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * Cookies (RFC 6265): reads Cookie, and writes the value of Set-Cookie. Pure.
 */
#ifndef DUDA_CORE_COOKIE_H
#define DUDA_CORE_COOKIE_H

#include <duda/cookie.h>
#include <monkey/buf.h>

/* A Set-Cookie that is allowed has at most this many bytes. */
enum { COOKIE_PAIR_BYTES_MAX = 4096, COOKIE_ATTRIBUTE_BYTES_MAX = 1024, COOKIE_BYTES_MAX = 6400 };

/*
 * Cuts the next cookie off a header: at ";", without blanks at the ends, quotes stay. Skips what has no "=" or no name.
 * Returns false after the last one.
 */
bool cookie_cut(struct mk_str *header, struct mk_str *ret_name, struct mk_str *ret_value);

/* Finds the first cookie of that name, in its case of letters. Returns false if there is none. */
bool cookie_find(struct mk_str header, struct mk_str name, struct mk_str *ret_value);

/*
 * Appends the value of Set-Cookie. Returns 0, -EINVAL (see struct duda_api_cookie) or the buffer's error. `path` is
 * used for a cookie without one.
 */
int cookie_write(struct mk_buf *out, const struct duda_cookie *cookie, const char *path);
/* Appends what deletes a cookie; returns as cookie_write(). */
int cookie_write_removal(struct mk_buf *out, const struct duda_cookie *cookie, const char *path);

/*
 * Appends the value of Set-Cookie for the old API, which allows all bytes but control bytes and ";". `expires` 0: until
 * the browser ends. Returns 0, -EINVAL or the buffer's error.
 */
int cookie_write_old(struct mk_buf *out, struct mk_str name, struct mk_str value, const char *path, int64_t expires);

#endif

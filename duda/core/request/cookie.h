// SPDX-License-Identifier: Apache-2.0
/*
 * Cookies of services: those of <monkey/kit/cookie.h>, and those that only the original API can set. Pure.
 */
#ifndef DUDA_CORE_REQUEST_COOKIE_H
#define DUDA_CORE_REQUEST_COOKIE_H

#include <duda/cookie.h>
#include <monkey/kit/cookie.h>

/* Returns the cookie of the library; `path` is used for one without a path. Points to what `c` points to. */
struct mk_cookie cookie_from(const struct duda_cookie *c, const char *path);

/*
 * Appends the value of Set-Cookie for the old API, which allows all bytes but control bytes and ";". `expires` 0: until
 * the browser ends. Returns 0, -EINVAL or the buffer's error.
 */
int cookie_write_old(struct mk_buf *out, struct mk_str name, struct mk_str value, const char *path, int64_t expires);

#endif

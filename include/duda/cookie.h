// SPDX-License-Identifier: Apache-2.0
/*
 * The object `cookie` (RFC 6265).
 */
#ifndef DUDA_COOKIE_H
#define DUDA_COOKIE_H

#include "types.h"

enum duda_same_site {
    DUDA_SAME_SITE_UNSET, /* browsers take this as Lax */
    DUDA_SAME_SITE_LAX,
    DUDA_SAME_SITE_STRICT,
    DUDA_SAME_SITE_NONE, /* needs `secure` */
};

/*
 *     cookie->set(dr, &(struct duda_cookie){.name = "user", .value = "7", .max_age = 3600, .http_only = true});
 */
struct duda_cookie {
    const char *name;   /* a token (RFC 9110 section 5.6.2) */
    const char *value;  /* visible ASCII but `"`, `,`, `;` and `\`; may be in `"` and `"`. NULL: empty */
    const char *path;   /* NULL: the URL of the service, or "/" for one that is the root of its host */
    const char *domain; /* NULL: this host only */
    int64_t max_age;    /* seconds; 0: until the browser ends, unless `expires` is set */
    int64_t expires;    /* seconds since 1970; 0: see `max_age` */
    bool secure, http_only;
    enum duda_same_site same_site;
};

struct duda_api_cookie {
    /* Returns the value of a cookie of the request, valid until the request ends; NULL if there is none. */
    const char *(*get)(duda_request_t *dr, const char *name);
    /* Compares the value with a text. Returns 0 if they are equal, else -1. */
    int (*cmp)(duda_request_t *dr, const char *name, const char *text);
    /*
     * Sets a cookie by a header of the response. A name that begins with "__Secure-" needs `secure`; one that begins
     * with
     * "__Host-" also the path "/" and no domain.
     * Returns 0, -EINVAL (a field is not as above, or name and value have more than 4,096 bytes, or path or domain more
     * than 1,024), -EALREADY (the head was sent) or -ENOMEM.
     */
    int (*set)(duda_request_t *dr, const struct duda_cookie *cookie);
    /* Makes the browser delete a cookie: that of the same name, path and domain. Returns as set(). */
    int (*remove)(duda_request_t *dr, const struct duda_cookie *cookie);
    /*
     * Returns the name of the next cookie of the request, and its value; NULL after the last one. `*at` is 0 before the
     * first call. Both are valid until the request ends.
     */
    const char *(*next)(duda_request_t *dr, size_t *at, const char **ret_value);
};

/* Levels 0 to 2, by the name "cookie.1". */
struct duda_api_cookie_1 {
    /*
     * Sets a cookie for the service's URL. `expires`: seconds since 1970, or 0 for a cookie that ends with the browser.
     * Returns 0 or -1.
     */
    int (*set)(duda_request_t *dr, const char *key, int key_len, const char *value, int value_len, int expires);
    /* Gets the value, which ends with a NUL and is valid until the request ends. Returns 0 or -1. */
    int (*get)(duda_request_t *dr, const char *key, char **ret_value, int *ret_len);
    /* Returns 0 if the value is that text, else -1. */
    int (*cmp)(duda_request_t *dr, const char *key, const char *text);
    /* Returns 0 or -1. */
    int (*destroy)(duda_request_t *dr, const char *key, int key_len);
};

DUDA_OBJECT(struct duda_api_cookie, cookie)

#endif

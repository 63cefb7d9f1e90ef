// SPDX-License-Identifier: Apache-2.0
/*
 * Cookies (RFC 6265, with the prefixes of names and SameSite of draft-ietf-httpbis-rfc6265bis): reads those that a
 * request has, and has a browser keep or delete one. libmonkey has these functions; a plugin links the
 * kit: `pkg-config --libs monkey-kit`.
 *
 *     struct mk_str theme = mk_request_cookie(req, MK_STR("theme"));
 *     struct mk_cookie cookie = {.name = MK_STR("theme"), .value = MK_STR("dark"), .max_age_s = 86400};
 *     int err = mk_response_cookie(req, &cookie);
 *
 * What a cookie says is what the client sends: any value may come, also under a name with a prefix. A cookie that is to
 * prove something has a value that cannot be guessed (<monkey/base/random.h>).
 *
 * Thread: those with a request as <monkey/request.h>; the others are pure, for any thread. No function allocates but
 * mk_response_cookie() and mk_response_remove_cookie(), in the arena of the exchange.
 */
#ifndef MONKEY_COOKIE_H
#define MONKEY_COOKIE_H

#include "../base/buf.h"
#include "../base/str.h"
#include "../request.h"

MK_C_BEGIN

/* ── cookies of a request ── */

/*
 * Returns the value of a cookie; `.p` NULL: the request has none of that name. Names are compared with the case of
 * their letters. Of several cookies with the name it is the first, which in browsers is the one with the longest path
 * (RFC 6265 section 5.4). Quotes around a value are part of it, as in browsers: what was set comes back byte by byte.
 * Several lines of Cookie count as one (RFC 9113 section 8.2.3). Valid until the callback returns.
 */
MK_API struct mk_str mk_request_cookie(struct mk_request *req, struct mk_str name);
/* Finds a cookie in the value of a header Cookie in the same way. The result points into `header`. */
MK_API struct mk_str mk_cookie_find(struct mk_str header, struct mk_str name);
/*
 * Cuts the next cookie off the value of a header Cookie: `rest` is mk_request_header(req, MK_HEADER_COOKIE) at first.
 * Both results point into it, without blanks at their ends. Skips what has no "=" or no name before it.
 * Returns false after the last cookie.
 */
MK_API bool mk_cookie_next(struct mk_str *rest, struct mk_str *ret_name, struct mk_str *ret_value);

/* ── cookies of a response ── */

enum mk_same_site {
    MK_SAME_SITE_UNSET, /* browsers take this as Lax */
    MK_SAME_SITE_LAX,
    MK_SAME_SITE_STRICT,
    MK_SAME_SITE_NONE, /* needs `secure` */
};

/* The most bytes of name and value together, of path and domain each, and of what mk_cookie_write() appends. */
enum { MK_COOKIE_PAIR_BYTES_MAX = 4096, MK_COOKIE_ATTRIBUTE_BYTES_MAX = 1024, MK_COOKIE_BYTES_MAX = 6400 };

/*
 * A cookie to be set (RFC 6265 section 4.1.1). A name that begins with "__Secure-", in any case of letters, needs
 * `secure`; one that begins with "__Host-" needs `secure`, the path "/" and no domain.
 */
struct mk_cookie {
    struct mk_str name;   /* a token (RFC 9110 section 5.6.2) */
    struct mk_str value;  /* visible ASCII without `"`, `,`, `;` and `\`; it may be between two `"` */
    struct mk_str path;   /* printable ASCII without `;`, from "/" on; `.p` NULL: "/" */
    struct mk_str domain; /* letters, digits, "-" and "."; `.p` NULL: this host only */
    int64_t max_age_s;    /* seconds; 0: until the browser ends, unless `expires_s` is set */
    int64_t expires_s;    /* seconds since 1970, up to the year 9999; 0: not set. `max_age_s` comes before it */
    enum mk_same_site same_site;
    bool secure, http_only;
    bool partitioned; /* one for each site in which pages of this host are embedded (CHIPS); needs `secure` */
};

/*
 * Has the browser keep a cookie: adds a header Set-Cookie, with a copy of what `cookie` points to. Does not replace one
 * that was added before. Caches may keep such a response like any other: see Cache-Control (RFC 9111).
 * Returns 0, -EINVAL (a member is not as above, or too long; so no text can begin another attribute or header),
 * -EALREADY (the head was sent) or -ENOMEM.
 */
MK_API int mk_response_cookie(struct mk_request *req, const struct mk_cookie *cookie);
/*
 * Has the browser delete the cookie of that name, path and domain, which must be those that it was set with; value,
 * `max_age_s` and `expires_s` have no effect. Returns as mk_response_cookie().
 */
MK_API int mk_response_remove_cookie(struct mk_request *req, const struct mk_cookie *cookie);

/*
 * Append the value of such a header. Return 0, -EINVAL (nothing is appended) or the sticky error of the buffer: a
 * cookie that is allowed has at most MK_COOKIE_BYTES_MAX bytes.
 */
MK_API int mk_cookie_write(struct mk_buf *out, const struct mk_cookie *cookie);
MK_API int mk_cookie_write_removal(struct mk_buf *out, const struct mk_cookie *cookie);

MK_C_END

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * Escaping for HTML, URIs and JSON. Each function appends to a buffer, whose sticky error reports a failure.
 */
#ifndef MONKEY_ESCAPE_H
#define MONKEY_ESCAPE_H

#include "buf.h"
#include "str.h"

#include <sys/types.h>

MK_C_BEGIN

/* Appends text for HTML: & < > " ' become character references, control bytes become U+FFFD. */
MK_API void mk_html_escape(struct mk_buf *out, struct mk_str text);

/*
 * Appends a decoded path for a URI: percent-encodes all bytes but unreserved characters, sub-delims, ":", "@" and "/"
 * (RFC 3986 section 3.3).
 */
MK_API void mk_path_encode(struct mk_buf *out, struct mk_str path);
/* The same of a path in which, if it has encoded slashes (mk_request_has_encoded_slash()), each "%2F" is one, and
 * stays.
 */
MK_API void mk_path_encode_kept(struct mk_buf *out, struct mk_str path, bool has_encoded_slash);
/* The same of a path that is not decoded: its escapes stay. */
MK_API void mk_path_encode_raw(struct mk_buf *out, struct mk_str path);

/*
 * Decodes the percent-escapes of a path once and normalizes it, as the server does for the path of a request: `//`
 * becomes `/`, and the segments "." and ".." are removed without leaving the root. Writes it to `out` with a NUL after
 * it. Any thread.
 * Returns its length, -EINVAL (no leading slash, a malformed escape, a NUL), -ENOENT (an encoded slash) or
 * -ENAMETOOLONG.
 */
MK_API ssize_t mk_path_normalize(struct mk_str raw, char *out, size_t size);

/*
 * Appends text for a JSON string (RFC 8259 section 7), without the quotes: " and \ are escaped, control characters
 * (those of C1, too) become \u00XX. The output is valid UTF-8: each maximal malformed part becomes U+FFFD.
 */
MK_API void mk_json_escape(struct mk_buf *out, struct mk_str text);

/* Returns the value of a hexadecimal digit, or -1 for any other byte. */
static inline int mk_hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = mk_lower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Writes `n` bytes as lower-case hexadecimal digits, two for each. Returns what is after the last one: no NUL. */
static inline char *mk_hex_write(char *to, const void *bytes, size_t n)
{
    const unsigned char *from = (const unsigned char *)bytes;
    for (size_t i = 0; i < n; i++) {
        *to++ = "0123456789abcdef"[from[i] >> 4];
        *to++ = "0123456789abcdef"[from[i] & 15];
    }
    return to;
}

/* Returns the byte that the escape at `p` means ("%41"), or -1: these `len` bytes do not begin with one. */
static inline int mk_percent_value(const char *p, size_t len)
{
    int high = len < 3 || p[0] != '%' ? -1 : mk_hex_value(p[1]), low = high < 0 ? -1 : mk_hex_value(p[2]);
    return low < 0 ? -1 : high << 4 | low;
}

/*
 * Appends a path with its escapes decoded; a "%" that begins none is copied. Nothing is normalized or refused: the
 * result may have NULs and further slashes. Returns false if there was such a "%".
 */
MK_API bool mk_path_decode(struct mk_buf *out, struct mk_str path);

/*
 * Appends text for a quoted string (RFC 9110 section 5.6.4), without the quotes: " and \ get a backslash. Control bytes
 * are not looked at.
 */
MK_API void mk_quoted_escape(struct mk_buf *out, struct mk_str text);

MK_C_END

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * Small codecs that more than one folder needs. Each appends to a buffer, whose sticky error tells of a
 * failure.
 */
#ifndef MONKEY_ESCAPE_H
#define MONKEY_ESCAPE_H

#include "buf.h"
#include "str.h"

/* Text inside HTML: & < > " ' become references; control bytes become U+FFFD. */
MK_API void mk_html_escape(struct mk_buf *out, struct mk_str text);

/*
 * A decoded path as it may stand in a URI: everything but unreserved characters, sub-delims, ":", "@"
 * and "/" is percent-encoded (RFC 3986 section 3.3).
 */
MK_API void mk_path_encode(struct mk_buf *out, struct mk_str path);

/* The value of a hexadecimal digit, -1 for any other byte. */
static inline int mk_hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = mk_lower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

#endif

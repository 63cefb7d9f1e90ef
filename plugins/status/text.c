// SPDX-License-Identifier: Apache-2.0
/*
 * Writes UTF-8 (text.h).
 */
#include "text.h"

#include <monkey/utf8.h>

struct mk_str text_next(struct mk_str *rest)
{
    size_t n = mk_utf8_length(*rest);
    struct mk_str character = n ? mk_str(rest->p, n) : MK_UTF8_REPLACEMENT;
    n += !n;
    *rest = mk_str_after(*rest, n);
    return character;
}

void text_write(struct mk_buf *out, struct mk_str text)
{
    while (text.len)
        mk_buf_adds(out, text_next(&text));
}

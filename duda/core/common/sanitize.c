// SPDX-License-Identifier: Apache-2.0
/*
 * Text for pages (sanitize.h).
 */
#include "common/sanitize.h"

#include <monkey/base/escape.h>
#include <monkey/base/utf8.h>

/* Cuts the next character off `text`. Returns it, or what is written in its place. */
static struct mk_str split_char(struct mk_str *text)
{
    struct mk_str c = mk_utf8_next(text);
    return mk_utf8_is_control(c) ? MK_STR(" ") : c;
}

size_t sanitize_text(char *to, size_t size, struct mk_str text)
{
    size_t len = 0;
    while (text.len) {
        struct mk_str c = split_char(&text);
        if (c.len > size - len)
            break;
        memcpy(to + len, c.p, c.len);
        len += c.len;
    }
    return len;
}

void sanitize_html(struct mk_buf *out, struct mk_str text)
{
    while (text.len)
        mk_html_escape(out, split_char(&text));
}

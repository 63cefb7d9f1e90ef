// SPDX-License-Identifier: Apache-2.0
/*
 * Text for pages (clean.h).
 */
#include "common/clean.h"

#include <monkey/escape.h>
#include <monkey/utf8.h>

/* Cuts the next character off `text`. Returns it, or what is written in its place. */
static struct mk_str cut_char(struct mk_str *text)
{
    struct mk_str c = mk_utf8_next(text);
    return mk_utf8_is_control(c) ? MK_STR(" ") : c;
}

size_t clean_text(char *to, size_t size, struct mk_str text)
{
    size_t len = 0;
    while (text.len) {
        struct mk_str c = cut_char(&text);
        if (c.len > size - len)
            break;
        memcpy(to + len, c.p, c.len);
        len += c.len;
    }
    return len;
}

void clean_html(struct mk_buf *out, struct mk_str text)
{
    while (text.len)
        mk_html_escape(out, cut_char(&text));
}

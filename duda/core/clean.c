// SPDX-License-Identifier: Apache-2.0
/*
 * Text for pages (clean.h).
 */
#include "clean.h"

#include <monkey/escape.h>
#include <monkey/utf8.h>

/* Cuts the next character off `text`. Returns it, or what stands for it. */
static struct mk_str cut_char(struct mk_str *text)
{
    size_t n = mk_utf8_length(*text);
    struct mk_str c = n ? mk_str(text->p, n) : MK_UTF8_REPLACEMENT;
    bool is_c1 = n == 2 && (unsigned char)c.p[0] == 0xc2 && (unsigned char)c.p[1] < 0xa0;
    if (n == 1 && ((unsigned char)*c.p < ' ' || *c.p == 0x7f))
        c = MK_STR(" ");
    else if (is_c1)
        c = MK_STR(" ");
    n = n ? n : 1;
    *text = mk_str(text->p + n, text->len - n);
    return c;
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

void clean_json(struct mk_buf *out, struct mk_str text)
{
    mk_buf_addc(out, '"');
    while (text.len) {
        struct mk_str c = cut_char(&text);
        if (*c.p == '"' || *c.p == '\\')
            mk_buf_addc(out, '\\');
        mk_buf_adds(out, c);
    }
    mk_buf_addc(out, '"');
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Text for pages (clean.h).
 */
#include "clean.h"

#include <monkey/escape.h>

#define REPLACEMENT "\xef\xbf\xbd"

/* Returns the length of the valid character at the begin of `s`, which is not empty; 0: it is invalid (RFC 3629). */
static size_t read_char(struct mk_str s)
{
    static const struct {
        unsigned char first, last, from, to; /* the first byte, and the range of the second one */
        size_t len;
    } rows[] = {
        {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3}, {0xe1, 0xec, 0x80, 0xbf, 3},
        {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3}, {0xf0, 0xf0, 0x90, 0xbf, 4},
        {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
    };
    const unsigned char *p = (const unsigned char *)s.p;
    if (p[0] < 0x80)
        return 1;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (p[0] < rows[i].first || p[0] > rows[i].last)
            continue;
        bool good = s.len >= rows[i].len && p[1] >= rows[i].from && p[1] <= rows[i].to;
        for (size_t k = 2; good && k < rows[i].len; k++)
            good = (p[k] & 0xc0) == 0x80;
        return good ? rows[i].len : 0;
    }
    return 0;
}

/* Cuts the next character off `text`. Returns it, or what stands for it. */
static struct mk_str cut_char(struct mk_str *text)
{
    size_t n = read_char(*text);
    struct mk_str c = n ? mk_str(text->p, n) : MK_STR(REPLACEMENT);
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

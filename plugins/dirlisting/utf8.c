// SPDX-License-Identifier: Apache-2.0
/*
 * Reads UTF-8 (utf8.h) by table 3-7 of the Unicode standard.
 */
#include "utf8.h"

#include <assert.h>

static const struct {
    unsigned char first, last, length, second_min, second_max;
} sequences[] = {
    {0x00, 0x7f, 1, 0x80, 0xbf}, {0xc2, 0xdf, 2, 0x80, 0xbf}, {0xe0, 0xe0, 3, 0xa0, 0xbf},
    {0xe1, 0xec, 3, 0x80, 0xbf}, {0xed, 0xed, 3, 0x80, 0x9f}, {0xee, 0xef, 3, 0x80, 0xbf},
    {0xf0, 0xf0, 4, 0x90, 0xbf}, {0xf1, 0xf3, 4, 0x80, 0xbf}, {0xf4, 0xf4, 4, 0x80, 0x8f},
};

/* Returns how many bytes at the beginning of `s` belong together; `ret_valid`: whether they are a character. */
static size_t measure_sequence(struct mk_str s, bool *ret_valid)
{
    unsigned char first = (unsigned char)s.p[0];
    size_t i = 0, n = 1, count = sizeof(sequences) / sizeof(sequences[0]);
    while (i < count && (first < sequences[i].first || first > sequences[i].last))
        i++;
    size_t length = i < count ? sequences[i].length : 1;
    while (n < length && n < s.len) {
        unsigned char c = (unsigned char)s.p[n];
        if (c < (n == 1 ? sequences[i].second_min : 0x80) || c > (n == 1 ? sequences[i].second_max : 0xbf))
            break;
        n++;
    }
    *ret_valid = i < count && n == length;
    return n;
}

struct mk_str utf8_next(struct mk_str *rest)
{
    bool valid;
    assert(rest->len);
    size_t n = measure_sequence(*rest, &valid);
    struct mk_str character = valid ? mk_str(rest->p, n) : UTF8_REPLACEMENT;
    *rest = mk_str(rest->p + n, rest->len - n);
    return character;
}

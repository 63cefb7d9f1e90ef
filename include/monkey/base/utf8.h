// SPDX-License-Identifier: Apache-2.0
/*
 * Reads UTF-8 (RFC 3629), a character at a time: overlong forms, surrogates and values above U+10FFFF are malformed.
 * All functions are pure.
 */
#ifndef MONKEY_UTF8_H
#define MONKEY_UTF8_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "str.h"

MK_C_BEGIN

/*
 * Returns how many bytes at the beginning of `s`, which is not empty, belong together: a character (`*ret_valid`), or
 * the maximal part of a malformed one (section 3.9 of the Unicode standard), which may be cut by the end of `s`.
 */
static inline size_t mk_utf8_measure(struct mk_str s, bool *ret_valid)
{
    static const struct {
        unsigned char first, last, length, second_min, second_max; /* table 3-7 of the Unicode standard */
    } sequences[] = {
        {0x00, 0x7f, 1, 0x80, 0xbf}, {0xc2, 0xdf, 2, 0x80, 0xbf}, {0xe0, 0xe0, 3, 0xa0, 0xbf},
        {0xe1, 0xec, 3, 0x80, 0xbf}, {0xed, 0xed, 3, 0x80, 0x9f}, {0xee, 0xef, 3, 0x80, 0xbf},
        {0xf0, 0xf0, 4, 0x90, 0xbf}, {0xf1, 0xf3, 4, 0x80, 0xbf}, {0xf4, 0xf4, 4, 0x80, 0x8f},
    };
    assert(s.len);
    unsigned char first = (unsigned char)s.p[0];
    size_t i = 0, n = 1, count = MK_COUNT_OF(sequences);
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

/* Returns the length of the character that `s`, which is not empty, begins with; 0 if it is malformed. */
static inline size_t mk_utf8_length(struct mk_str s)
{
    bool valid;
    size_t n = mk_utf8_measure(s, &valid);
    return valid ? n : 0;
}

#define MK_UTF8_REPLACEMENT MK_STR("\xef\xbf\xbd") /* U+FFFD */

/*
 * Cuts the next character off `rest`, which is not empty. If its bytes are malformed, the result is U+FFFD, one for
 * each maximal part.
 */
static inline struct mk_str mk_utf8_next(struct mk_str *rest)
{
    bool valid;
    size_t n = mk_utf8_measure(*rest, &valid);
    struct mk_str character = valid ? mk_str(rest->p, n) : MK_UTF8_REPLACEMENT;
    *rest = mk_str_after(*rest, n);
    return character;
}

/* Returns the code point of a character, which is not malformed. */
static inline uint32_t mk_utf8_decode(struct mk_str character)
{
    assert(character.len && character.len <= 4);
    uint32_t c = (unsigned char)character.p[0];
    if (character.len > 1)
        c &= 0x7fu >> character.len;
    for (size_t i = 1; i < character.len; i++)
        c = c << 6 | ((unsigned char)character.p[i] & 0x3f);
    return c;
}

/* Returns whether a character is a control character of C0 or C1 (U+0080 to U+009F), which terminals obey, or DEL. */
static inline bool mk_utf8_is_control(struct mk_str character)
{
    unsigned char first = (unsigned char)character.p[0];
    return first < 0x20 || first == 0x7f || (first == 0xc2 && (unsigned char)character.p[1] < 0xa0);
}

MK_C_END

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * A string is a pointer and a length; it owns nothing and needs no terminating NUL.
 *
 * All functions are pure. Comparisons with an `i` ignore the case of ASCII letters only, in every locale, as RFC 9110
 * demands for field names.
 */
#ifndef MONKEY_STR_H
#define MONKEY_STR_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../status.h"

MK_C_BEGIN

struct mk_str {
    const char *p;
    size_t len;
};

/* A string from a literal; its length is a constant. In C++ it is no constant expression. */
#ifdef __cplusplus
#define MK_STR(literal) mk_str("" literal, sizeof(literal) - 1)
#define MK_STR_NONE mk_str(NULL, 0)
#else
#define MK_STR(literal) ((struct mk_str){"" literal, sizeof(literal) - 1})
#define MK_STR_NONE ((struct mk_str){NULL, 0})
#endif
/* A literal as the initializer of a static variable. */
// clang-format off
#define MK_STR_INIT(literal) {"" literal, sizeof(literal) - 1}
// clang-format on

/* For "%.*s". */
#define MK_STR_ARG(s) (int)(s).len, (s).p

/* Returns the string of `len` bytes at `p`, which may be NULL if `len` is 0. */
static inline struct mk_str mk_str(const char *p, size_t len)
{
    assert(p || !len);
    struct mk_str s = {p, len};
    return s;
}

/* Returns the string of a C string; NULL becomes MK_STR_NONE. */
static inline struct mk_str mk_str_c(const char *cstr)
{
    struct mk_str s = {cstr, cstr ? strlen(cstr) : 0};
    return s;
}

/* Returns true if both have the same bytes. */
static inline bool mk_str_eq(struct mk_str a, struct mk_str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.p, b.p, a.len) == 0);
}

/* Compares as memcmp() does; a string comes after those that it begins with. */
static inline int mk_str_compare(struct mk_str a, struct mk_str b)
{
    size_t n = a.len < b.len ? a.len : b.len;
    int order = n ? memcmp(a.p, b.p, n) : 0;
    return order ? order : (a.len > b.len) - (a.len < b.len);
}

/* The same as mk_str_eq() for secrets: how long it takes depends on the lengths only, not on the bytes. */
static inline bool mk_str_eq_secret(struct mk_str a, struct mk_str b)
{
    volatile unsigned char difference = a.len != b.len;
    for (size_t i = 0; i < a.len && i < b.len; i++)
        difference = (unsigned char)(difference | (a.p[i] ^ b.p[i]));
    return difference == 0;
}

/* Returns true if `s` has a control byte other than a tab, which no field value has (RFC 9110 section 5.5). */
static inline bool mk_str_has_control(struct mk_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (((unsigned char)s.p[i] < ' ' && s.p[i] != '\t') || s.p[i] == 0x7f)
            return true;
    return false;
}

/* Returns true if `s` begins with the bytes of `prefix`; every string begins with the empty one. */
static inline bool mk_str_starts(struct mk_str s, struct mk_str prefix)
{
    return s.len >= prefix.len && (prefix.len == 0 || memcmp(s.p, prefix.p, prefix.len) == 0);
}

/* Returns true if `s` ends with the bytes of `end`; every string ends with the empty one. */
static inline bool mk_str_ends(struct mk_str s, struct mk_str end)
{
    return s.len >= end.len && (end.len == 0 || memcmp(s.p + s.len - end.len, end.p, end.len) == 0);
}

/* Returns the lower-case letter of an ASCII capital, and other bytes as they are. */
static inline char mk_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

/* Returns true if both have the same bytes, except for the case of ASCII letters. */
static inline bool mk_str_ieq(struct mk_str a, struct mk_str b)
{
    if (a.len != b.len)
        return false;
    for (size_t i = 0; i < a.len; i++)
        if (a.p[i] != b.p[i] && mk_lower(a.p[i]) != mk_lower(b.p[i]))
            return false;
    return true;
}

/* Returns true if `s` is one of `n` strings, except for the case of ASCII letters. */
static inline bool mk_str_is_any(struct mk_str s, const struct mk_str *strings, size_t n)
{
    while (n && !mk_str_ieq(s, strings[n - 1]))
        n--;
    return n;
}

/* Returns true if `s` begins with the bytes of `start`, except for the case of ASCII letters. */
static inline bool mk_str_istarts(struct mk_str s, struct mk_str start)
{
    return s.len >= start.len && mk_str_ieq(mk_str(s.p, start.len), start);
}

/* Returns true if `s` ends with the bytes of `end`, except for the case of ASCII letters. */
static inline bool mk_str_iends(struct mk_str s, struct mk_str end)
{
    return s.len >= end.len && mk_str_ieq(mk_str(s.p + (s.len - end.len), end.len), end);
}

/* Returns true for ASCII letters, digits, and the characters of `marks`. */
MK_API bool mk_is_name_byte(char c, const char *marks);
/* Returns true if `s` has a byte, and none but ASCII letters, digits, and the characters of `marks`. */
MK_API bool mk_str_is_name(struct mk_str s, const char *marks);

/* Returns true for a decimal digit. */
static inline bool mk_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Returns true for the bytes of OWS (RFC 9110 section 5.6.3): space and tab. */
static inline bool mk_is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* Moves `s` after the spaces and tabs at its start. */
static inline void mk_str_skip_blanks(struct mk_str *s)
{
    while (s->len && mk_is_blank(*s->p)) {
        s->p++;
        s->len--;
    }
}

/* Returns `s` without the spaces and tabs at both ends. */
static inline struct mk_str mk_str_trim(struct mk_str s)
{
    mk_str_skip_blanks(&s);
    while (s.len && mk_is_blank(s.p[s.len - 1]))
        s.len--;
    return s;
}

/* Returns true for the bytes of a token (RFC 9110 section 5.6.2), which the names of headers and methods are. */
static inline bool mk_is_token_byte(char c)
{
    return c > ' ' && c < 0x7f && !strchr("\"(),/:;<=>?@[\\]{}", c);
}

/* Returns the number of bytes at the start of `s` that a token may have. */
static inline size_t mk_str_token_len(struct mk_str s)
{
    size_t n = 0;
    while (n < s.len && mk_is_token_byte(s.p[n]))
        n++;
    return n;
}

/* Returns true for a token, which is not empty. */
static inline bool mk_str_is_token(struct mk_str s)
{
    return s.len && mk_str_token_len(s) == s.len;
}

/* Returns true for a byte that is one of `marks`. */
static inline bool mk_is_one_of(char c, const char *marks)
{
    return c && strchr(marks, c);
}

/* Returns the number of bytes at the start of `s` that are visible ASCII, and none of `except`. */
static inline size_t mk_str_visible_len(struct mk_str s, const char *except)
{
    size_t n = 0;
    while (n < s.len && s.p[n] > ' ' && s.p[n] < 0x7f && !strchr(except, s.p[n]))
        n++;
    return n;
}

/* Returns true if all bytes of `s`, which may be empty, are visible ASCII, and none of `except`. */
static inline bool mk_str_is_visible(struct mk_str s, const char *except)
{
    return mk_str_visible_len(s, except) == s.len;
}

/* Returns what is before the first byte that is one of `ends`, or all of `s`. */
static inline struct mk_str mk_str_until(struct mk_str s, const char *ends)
{
    if (ends[0] && !ends[1]) {
        const char *end = s.len ? (const char *)memchr(s.p, ends[0], s.len) : NULL;
        return mk_str(s.p, end ? (size_t)(end - s.p) : s.len);
    }
    size_t n = 0;
    while (n < s.len && !mk_is_one_of(s.p[n], ends))
        n++;
    return mk_str(s.p, n);
}

/* Returns `s` without the bytes at its end that are one of `marks`. */
static inline struct mk_str mk_str_strip_end(struct mk_str s, const char *marks)
{
    while (s.len && mk_is_one_of(s.p[s.len - 1], marks))
        s.len--;
    return s;
}

/* Returns what is after the first `n` bytes, which `s` has. */
static inline struct mk_str mk_str_after(struct mk_str s, size_t n)
{
    assert(n <= s.len);
    return mk_str(s.p + n, s.len - n);
}

/* Cuts the next word off, which blanks end, and removes those around it. It is empty at the end of the text. */
static inline struct mk_str mk_str_next_word(struct mk_str *rest)
{
    *rest = mk_str_trim(*rest);
    struct mk_str word = mk_str_until(*rest, " \t");
    *rest = mk_str_after(*rest, word.len);
    return word;
}

/* Returns true for "." and "..", which are no names of files. */
static inline bool mk_str_is_dots(struct mk_str s)
{
    return s.len && s.len <= 2 && s.p[0] == '.' && s.p[s.len - 1] == '.';
}

/* Returns `s`, or its first `max` bytes if it is longer. */
static inline struct mk_str mk_str_truncate(struct mk_str s, size_t max)
{
    return mk_str(s.p, s.len < max ? s.len : max);
}

/* Returns what is before the first `end` of `rest`, or all of it, and moves `rest` after that byte, or to its end. */
static inline struct mk_str mk_str_split(struct mk_str *rest, char end)
{
    const char *at = rest->len ? (const char *)memchr(rest->p, end, rest->len) : NULL;
    struct mk_str first = mk_str(rest->p, at ? (size_t)(at - rest->p) : rest->len);
    *rest = at ? mk_str(at + 1, rest->len - first.len - 1) : mk_str(rest->len ? rest->p + rest->len : rest->p, 0);
    return first;
}

/* Cuts the next line off `rest`; the result has neither its LF nor a CR before that. */
static inline struct mk_str mk_str_split_line(struct mk_str *rest)
{
    struct mk_str line = mk_str_split(rest, '\n');
    line.len -= line.len && line.p[line.len - 1] == '\r';
    return line;
}

/*
 * Cuts the next element of a comma-separated list (RFC 9110 section 5.6.1) off `rest`: trimmed, with commas in quoted
 * strings kept. Skips empty elements.
 * Returns false when no element is left.
 */
MK_API bool mk_str_next(struct mk_str *rest, struct mk_str *ret_element);

/* Returns true if a comma-separated list has an element, in any case of letters. */
static inline bool mk_str_list_has(struct mk_str list, struct mk_str wanted)
{
    struct mk_str element;
    while (mk_str_next(&list, &element))
        if (mk_str_ieq(element, wanted))
            return true;
    return false;
}

/*
 * Reads a decimal number of digits only, at most `max`.
 * Returns false for an empty string, a sign, any other byte or an overflow; `*ret_value` is then unchanged.
 */
MK_API bool mk_str_u64(struct mk_str s, uint64_t max, uint64_t *ret_value);

/*
 * Returns the number of single edits (insert, delete, replace, swap of neighbours) between two names, ignoring case; 64
 * if one is longer than 64 bytes.
 */
MK_API unsigned mk_str_distance(struct mk_str a, struct mk_str b);

MK_C_END

#endif

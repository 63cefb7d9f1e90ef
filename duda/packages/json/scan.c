// SPDX-License-Identifier: Apache-2.0
/*
 * The grammar of JSON (scan.h). Brackets are kept as one bit for each level: 1 is an object.
 */
#include "scan.h"

#include <monkey/base/utf8.h>

#include <assert.h>
#include <string.h>

struct scanner {
    const char *at, *end;
    const struct scan_limits *limits;
    struct scan_result *result;
    unsigned depth;
    uint32_t values;
    uint64_t objects[SCAN_DEPTH_MAX / 64];
};

static bool fail_at(struct scanner *s, const char *at, const char *error)
{
    s->at = at;
    s->result->error = error;
    return false;
}

static bool fail_here(struct scanner *s, const char *error)
{
    return fail_at(s, s->at, error);
}

/* Returns the next byte, or 0 at the end; a NUL in the text is no part of JSON either. */
static unsigned char peek_byte(const struct scanner *s)
{
    return s->at < s->end ? (unsigned char)*s->at : 0;
}

static bool take_byte(struct scanner *s, char c)
{
    assert(s->at <= s->end);
    if (s->at == s->end || *s->at != c)
        return false;
    s->at++;
    return true;
}

static void skip_space(struct scanner *s)
{
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\n' || *s->at == '\r' || *s->at == '\t'))
        s->at++;
}

/* ── strings ── */

size_t scan_character(const char *text, size_t n)
{
    return mk_utf8_length(mk_str(text, n));
}

/* Reads four hexadecimal digits. Returns the number, or -1. */
static int read_hex(struct scanner *s)
{
    int value = 0;
    for (unsigned i = 0; i < 4; i++, s->at++) {
        unsigned char c = peek_byte(s), small = c | 0x20;
        if (c >= '0' && c <= '9')
            value = value * 16 + (c - '0');
        else if (small >= 'a' && small <= 'f')
            value = value * 16 + (small - 'a' + 10);
        else
            return -1;
    }
    return value;
}

/* Scans what follows "\u". Characters above U+FFFF are two of these: a high and a low surrogate. */
static bool scan_unicode(struct scanner *s)
{
    assert(s->at[-2] == '\\' && s->at[-1] == 'u');
    const char *begin = s->at - 2;
    int code = read_hex(s);
    if (code < 0)
        return fail_at(s, begin, "\\u needs four hexadecimal digits");
    if (code == 0)
        return fail_at(s, begin, "a string cannot have \\u0000");
    if (code < 0xd800 || code > 0xdfff)
        return true;
    if (code < 0xdc00 && take_byte(s, '\\') && take_byte(s, 'u') && (code = read_hex(s)) >= 0xdc00 && code <= 0xdfff)
        return true;
    return fail_at(s, begin, "half of a surrogate pair");
}

static bool scan_escape(struct scanner *s)
{
    unsigned char c = peek_byte(s);
    if (c == '\0' || !strchr("\"\\/bfnrtu", c))
        return fail_at(s, s->at - 1, "an unknown escape sequence");
    s->at++;
    return c != 'u' || scan_unicode(s);
}

/* Scans what follows the quote. */
static bool scan_string(struct scanner *s)
{
    const char *begin = s->at - 1;
    while (s->at < s->end) {
        unsigned char c = (unsigned char)*s->at;
        if (c < 0x20)
            return fail_here(s, "a control character in a string");
        size_t n = c < 0x80 ? 1 : scan_character(s->at, (size_t)(s->end - s->at));
        if (n == 0)
            return fail_here(s, "a string that is not UTF-8");
        s->at += n;
        if (c == '"')
            return true;
        if (c == '\\' && !scan_escape(s))
            return false;
    }
    return fail_at(s, begin, "a string without its end");
}

/* ── other values ── */

static size_t skip_digits(struct scanner *s)
{
    const char *begin = s->at;
    while (peek_byte(s) >= '0' && peek_byte(s) <= '9')
        s->at++;
    return (size_t)(s->at - begin);
}

static bool scan_number(struct scanner *s)
{
    const char *begin = s->at;
    take_byte(s, '-');
    bool zero = peek_byte(s) == '0';
    size_t digits = skip_digits(s);
    bool right = digits == 1 || (digits > 1 && !zero);
    if (right && take_byte(s, '.'))
        right = skip_digits(s) > 0;
    if (right && (take_byte(s, 'e') || take_byte(s, 'E'))) {
        s->result->exponents = true;
        if (!take_byte(s, '+'))
            take_byte(s, '-');
        right = skip_digits(s) > 0;
    }
    if (!right)
        return fail_at(s, begin, "a malformed number");
    return s->at - begin <= SCAN_NUMBER_BYTES_MAX ? true : fail_at(s, begin, "a number with too many digits");
}

static bool scan_word(struct scanner *s)
{
    static const char *const words[] = {"true", "false", "null"};
    for (size_t i = 0; i < MK_COUNT_OF(words); i++) {
        size_t len = strlen(words[i]);
        if ((size_t)(s->end - s->at) >= len && memcmp(s->at, words[i], len) == 0) {
            s->at += len;
            return true;
        }
    }
    return fail_here(s, s->at == s->end ? "a value is missing at the end" : "this is no value");
}

/* ── arrays and objects ── */

static bool is_in_object(const struct scanner *s)
{
    assert(s->depth > 0 && s->depth <= s->limits->depth);
    unsigned level = s->depth - 1;
    return s->objects[level / 64] >> level % 64 & 1;
}

static bool open_bracket(struct scanner *s, bool object)
{
    if (s->depth == s->limits->depth)
        return fail_at(s, s->at - 1, "too many arrays and objects within each other");
    uint64_t bit = UINT64_C(1) << s->depth % 64, *word = &s->objects[s->depth / 64];
    *word = object ? *word | bit : *word & ~bit;
    s->depth++;
    return true;
}

/* Scans the key and the colon of a member. */
static bool scan_key(struct scanner *s)
{
    skip_space(s);
    if (!take_byte(s, '"'))
        return fail_here(s, "a key in quotes is missing");
    if (!scan_string(s))
        return false;
    skip_space(s);
    return take_byte(s, ':') ? true : fail_here(s, "a colon is missing");
}

/* Closes brackets and takes the comma before the next element. Returns whether there is one, or it failed. */
static bool scan_behind_value(struct scanner *s)
{
    while (s->depth) {
        skip_space(s);
        bool object = is_in_object(s);
        if (take_byte(s, ','))
            return object ? scan_key(s) : true;
        if (!take_byte(s, object ? '}' : ']'))
            return fail_here(s, object ? "a comma or } is missing" : "a comma or ] is missing");
        s->depth--;
    }
    return false;
}

/* Scans a value up to its first element, if it is an array or object that has one: `*ret_open`. */
static bool scan_begin(struct scanner *s, bool *ret_open)
{
    *ret_open = false;
    skip_space(s);
    unsigned char c = peek_byte(s);
    if (++s->values > s->limits->values)
        return fail_here(s, "too many values");
    if (c == '-' || (c >= '0' && c <= '9'))
        return scan_number(s);
    if (take_byte(s, '"'))
        return scan_string(s);
    if (!take_byte(s, '{') && !take_byte(s, '['))
        return scan_word(s);
    if (!open_bracket(s, c == '{'))
        return false;
    skip_space(s);
    if (take_byte(s, c == '{' ? '}' : ']')) {
        s->depth--;
        return true;
    }
    *ret_open = true;
    return c == '[' || scan_key(s);
}

static void scan_tree(struct scanner *s)
{
    bool open, more = true;
    while (more && !s->result->error)
        more = scan_begin(s, &open) && (open || scan_behind_value(s));
}

/* A byte order mark, which some programs put in front, is ignored. */
static size_t measure_mark(const char *text, size_t len)
{
    return len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}

bool scan_value(const char *text, size_t len, const struct scan_limits *limits, struct scan_result *ret)
{
    assert(text || !len);
    struct scanner s = {.at = text + measure_mark(text, len), .end = text + len, .limits = limits, .result = ret};
    *ret = (struct scan_result){0};
    skip_space(&s);
    ret->begin = (size_t)(s.at - text);
    if (len > limits->bytes)
        fail_at(&s, text, "the text is too long");
    else
        scan_tree(&s);
    ret->end = (size_t)(s.at - text);
    return !ret->error;
}

bool scan_text(const char *text, size_t len, const struct scan_limits *limits, struct scan_result *ret)
{
    assert(text || !len);
    if (!scan_value(text, len, limits, ret))
        return false;
    struct scanner rest = {.at = text + ret->end, .end = text + len, .result = ret};
    skip_space(&rest);
    if (rest.at == rest.end)
        return true;
    ret->end = (size_t)(rest.at - text);
    ret->error = "more text behind the value";
    return false;
}

void scan_place(const char *text, size_t at, unsigned *ret_line, unsigned *ret_column)
{
    unsigned line = 1;
    const char *begin = text, *end = text + at;
    for (const char *p; (p = memchr(begin, '\n', (size_t)(end - begin)));) {
        begin = p + 1;
        line++;
    }
    *ret_line = line;
    *ret_column = (unsigned)(end - begin) + 1;
}

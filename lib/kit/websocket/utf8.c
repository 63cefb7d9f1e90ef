// SPDX-License-Identifier: Apache-2.0
/*
 * The validator of UTF-8 (utf8.h). Of 16 bytes at a time, each is compared with the three before it, and blocks of 64
 * bytes of ASCII are skipped. Characters that are cut by the ends of a piece, and short pieces, go byte by byte.
 */
#include "utf8.h"

#include <string.h>

typedef uint8_t vector __attribute__((vector_size(16)));
typedef int8_t signed_vector __attribute__((vector_size(16)));
typedef uint64_t halves __attribute__((vector_size(16)));

enum { VECTOR = sizeof(vector), BLOCK = 4 * VECTOR, BEFORE = 3 };

/* ── one byte ── */

static bool is_ascii(uint8_t byte)
{
    return byte < 0x80;
}

static bool is_continuation(uint8_t byte)
{
    return (byte & 0xc0) == 0x80;
}

/* What follows a first byte (RFC 3629 section 4, UTF8-tail is 80..BF); rows in order, each from `first` on. */
static const struct lead {
    uint8_t first, left, min, max;
} leads[] = {
    {0xf5, 0, 0xff, 0},    {0xf4, 3, 0x80, 0x8f}, {0xf1, 3, 0x80, 0xbf}, {0xf0, 3, 0x90, 0xbf}, {0xee, 2, 0x80, 0xbf},
    {0xed, 2, 0x80, 0x9f}, {0xe1, 2, 0x80, 0xbf}, {0xe0, 2, 0xa0, 0xbf}, {0xc2, 1, 0x80, 0xbf}, {0x80, 0, 0xff, 0},
};

static bool feed_lead(struct mk__utf8 *u, uint8_t byte)
{
    const struct lead *l = leads;
    if (is_ascii(byte))
        return true;
    while (byte < l->first)
        l++;
    u->left = l->left;
    u->min = l->min;
    u->max = l->max;
    u->bad = !l->left;
    return !u->bad;
}

static bool feed_byte(struct mk__utf8 *u, uint8_t byte)
{
    if (!u->left)
        return feed_lead(u, byte);
    u->bad = byte < u->min || byte > u->max;
    u->left--;
    u->min = 0x80;
    u->max = 0xbf;
    return !u->bad;
}

/* ── vectors ── */

static vector load_vector(const uint8_t *p)
{
    vector v;
    memcpy(&v, p, sizeof(v));
    return v;
}

static bool has_bits(vector v)
{
    halves h = (halves)v;
    return h[0] | h[1];
}

static vector fill_vector(uint8_t byte)
{
    return (vector){} + byte;
}

/* Returns a vector with the highest bit set where one of the bytes of a block is no ASCII. */
static vector find_non_ascii(const uint8_t *p)
{
    return (load_vector(p) | load_vector(p + VECTOR) | load_vector(p + 2 * VECTOR) | load_vector(p + 3 * VECTOR)) &
           fill_vector(0x80);
}

/*
 * Returns a vector with a bit set where one of 16 bytes is an error after the three bytes before it, which are valid so
 * far. A first byte at the end is not yet compared with what follows it.
 */
static vector find_errors(const uint8_t *p)
{
    vector now = load_vector(p), last = load_vector(p - 1);
    vector continuations = (vector)((signed_vector)now < (signed_vector)fill_vector(0xc0));
    vector expected = (vector)(last >= fill_vector(0xc0)) | (vector)(load_vector(p - 2) >= fill_vector(0xe0)) |
                      (vector)(load_vector(p - 3) >= fill_vector(0xf0));
    vector errors = continuations ^ expected;
    errors |= (vector)((now & 0xfe) == fill_vector(0xc0)) | (vector)(now >= fill_vector(0xf5));
    errors |= (vector)(last == fill_vector(0xe0)) & (vector)(now < fill_vector(0xa0));  /* overlong */
    errors |= (vector)(last == fill_vector(0xed)) & (vector)(now >= fill_vector(0xa0)); /* a surrogate */
    errors |= (vector)(last == fill_vector(0xf0)) & (vector)(now < fill_vector(0x90));  /* overlong */
    errors |= (vector)(last == fill_vector(0xf4)) & (vector)(now >= fill_vector(0x90)); /* above U+10FFFF */
    return errors;
}

/* Returns where the character of the bytes before `i` begins if it may be incomplete, else `i`. */
static size_t find_last_lead(const uint8_t *p, size_t i)
{
    for (size_t back = 1; back <= BEFORE; back++)
        if (!is_continuation(p[i - back]))
            return i - back;
    return i;
}

/* Returns as find_errors(), for the first bytes of a text: as if ASCII were before them. */
static vector find_first_errors(const uint8_t *p)
{
    uint8_t bytes[BEFORE + VECTOR] = {};
    memcpy(bytes + BEFORE, p, VECTOR);
    return find_errors(bytes + BEFORE);
}

/* Returns as find_errors(), for a block. After ASCII, a block of ASCII has none. */
static vector find_block_errors(const uint8_t *p)
{
    if (is_ascii(p[-1]) && !has_bits(find_non_ascii(p)))
        return (vector){};
    return find_errors(p) | find_errors(p + VECTOR) | find_errors(p + 2 * VECTOR) | find_errors(p + 3 * VECTOR);
}

/*
 * Checks `n` bytes, at least a vector, that begin with a character.
 * Returns where the last character begins if it may be incomplete, else `n`; `*ret_bad` is set after an error before
 * it.
 */
static size_t check_vectors(const uint8_t *p, size_t n, bool *ret_bad)
{
    vector errors = find_first_errors(p);
    size_t i = VECTOR;
    for (; n - i >= BLOCK && !has_bits(errors); i += BLOCK)
        errors = find_block_errors(p + i);
    for (; n - i >= VECTOR; i += VECTOR)
        errors |= find_errors(p + i);
    if (i < n && n >= BEFORE + VECTOR) { /* some of these bytes are compared twice */
        errors |= find_errors(p + n - VECTOR);
        i = n;
    }
    *ret_bad = has_bits(errors);
    return find_last_lead(p, i);
}

bool mk__utf8_feed(struct mk__utf8 *u, const void *bytes, size_t n)
{
    const uint8_t *p = bytes;
    size_t i = 0;
    while (i < n && u->left && !u->bad)
        feed_byte(u, p[i++]);
    if (n - i >= VECTOR && !u->bad)
        i += check_vectors(p + i, n - i, &u->bad);
    while (i < n && !u->bad)
        feed_byte(u, p[i++]);
    return !u->bad;
}

bool mk__utf8_is_valid(const void *bytes, size_t n)
{
    struct mk__utf8 u = {};
    return mk__utf8_feed(&u, bytes, n) && mk__utf8_complete(&u);
}

size_t mk__utf8_prefix(const void *bytes, size_t n)
{
    const uint8_t *p = bytes;
    struct mk__utf8 u = {};
    size_t end = 0;
    for (size_t i = 0; i < n && feed_byte(&u, p[i]); i++)
        if (!u.left)
            end = i + 1;
    return end;
}

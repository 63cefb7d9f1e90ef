// SPDX-License-Identifier: Apache-2.0
/*
 * Names and values of query strings and forms (urlencoded.h).
 */
#include "request/urlencoded.h"

#include "common/heap.h"

#include <monkey/base/escape.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

size_t urlencoded_bound(const char *text, size_t len)
{
    size_t n = len > 0;
    for (size_t i = 0; i < len; i++)
        n += text[i] == '&';
    return n;
}

/* Decodes the byte at `*at`, and moves `*at` after it. */
static char decode_byte(const char *text, size_t len, size_t *at)
{
    int value = mk_percent_value(text + *at, len - *at);
    char c = text[*at];
    *at += value < 0 ? 1 : 3;
    return value >= 0 ? (char)value : c == '+' ? ' ' : c;
}

/* Decodes in place, and ends the result with a NUL. Returns 0 or -EINVAL. */
static int decode_text(char *text, size_t len)
{
    size_t to = 0;
    for (size_t at = 0; at < len;) {
        char c = decode_byte(text, len, &at);
        if (!c)
            return -EINVAL;
        text[to++] = c;
    }
    assert(to <= len);
    text[to] = '\0';
    return 0;
}

/* Cuts the next pair that is not empty off a text, and ends it with a NUL. Returns false after the last one. */
static bool split_pair(char **text, size_t *left, char **ret_pair, size_t *ret_len)
{
    while (*left) {
        char *end = memchr(*text, '&', *left);
        size_t len = end ? (size_t)(end - *text) : *left;
        *ret_pair = *text;
        *ret_len = len;
        (*text)[len] = '\0';
        *text += end ? len + 1 : len;
        *left -= end ? len + 1 : len;
        if (len)
            return true;
    }
    return false;
}

static int decode_pair(char *pair, size_t len, struct urlencoded_pair *ret)
{
    char *equals = memchr(pair, '=', len);
    size_t name_len = equals ? (size_t)(equals - pair) : len;
    ret->name = pair;
    ret->value = "";
    if (decode_text(pair, name_len) < 0)
        return -EINVAL;
    if (!equals)
        return 0;
    ret->value = equals + 1;
    return decode_text(equals + 1, len - name_len - 1);
}

int urlencoded_decode(char *text, size_t len, struct urlencoded_pair *pairs, size_t max)
{
    size_t n = 0, pair_len;
    char *pair;
    while (split_pair(&text, &len, &pair, &pair_len)) {
        if (n == max)
            return -E2BIG;
        if (decode_pair(pair, pair_len, &pairs[n++]) < 0)
            return -EINVAL;
    }
    return (int)n;
}

int urlencoded_split(char *text, size_t len, struct urlencoded_pair *pairs, size_t max)
{
    size_t n = 0, pair_len;
    char *pair;
    while (n < max && split_pair(&text, &len, &pair, &pair_len)) {
        char *equals = memchr(pair, '=', pair_len);
        if (!equals)
            continue;
        *equals = '\0';
        pairs[n++] = (struct urlencoded_pair){pair, equals + 1};
    }
    return (int)n;
}

int urlencoded_number(const char *text, long *ret)
{
    size_t sign = *text == '-' || *text == '+', digits = strspn(text + sign, "0123456789");
    if (!digits || text[sign + digits])
        return -EINVAL;
    errno = 0;
    long value = strtol(text, NULL, 10);
    if (errno)
        return -ERANGE;
    *ret = value;
    return 0;
}

/* ── the pairs of a request ── */

enum { ARENA_TEXT_BYTES_MAX = 4096 };

void pairs_read(struct pairs *p, struct mk_arena *arena, struct mk_str text, bool decoded)
{
    size_t bound = urlencoded_bound(text.p, text.len), max = bound;
    if (max > URLENCODED_PAIRS_MAX)
        max = URLENCODED_PAIRS_MAX;
    p->is_read = true;
    p->n = 0;
    if (!bound)
        return;
    struct urlencoded_pair *items = mk_arena_alloc(arena, max * sizeof(*items));
    bool is_large = text.len >= ARENA_TEXT_BYTES_MAX;
    char *copy = is_large ? heap_alloc_until(arena, text.len + 1) : mk_arena_alloc(arena, text.len + 1);
    p->n = -ENOMEM;
    if (!items || !copy)
        return;
    memcpy(copy, text.p, text.len);
    copy[text.len] = '\0';
    p->n = (decoded ? urlencoded_decode : urlencoded_split)(copy, text.len, items, max);
    assert(p->n <= (int)max);
    p->items = items;
}

int pairs_add(struct pairs *p, struct mk_arena *arena, const char *name, const char *value)
{
    assert(p->is_read && p->n >= 0);
    struct urlencoded_pair *items = mk_arena_grow(arena, p->items, (uint32_t)p->n, sizeof(*items));
    if (!items)
        return -ENOMEM;
    items[p->n++] = (struct urlencoded_pair){name, value};
    p->items = items;
    return 0;
}

const char *pairs_next(const struct pairs *p, const char *name, int *at)
{
    while (name && at && *at >= 0 && *at < p->n) {
        const struct urlencoded_pair *pair = &p->items[(*at)++];
        if (strcmp(pair->name, name) == 0)
            return pair->value;
    }
    return NULL;
}

const char *pairs_get(const struct pairs *p, const char *name)
{
    int at = 0;
    return pairs_next(p, name, &at);
}

const char *pairs_get_id(const struct pairs *p, int n)
{
    return n >= 0 && n < p->n ? p->items[n].value : NULL;
}

const char *pairs_name(const struct pairs *p, int n)
{
    return n >= 0 && n < p->n ? p->items[n].name : NULL;
}

int pairs_cmp(const struct pairs *p, const char *name, const char *text)
{
    const char *value = pairs_get(p, name);
    return value && text && strcmp(value, text) == 0 ? 0 : -1;
}

int pairs_get_number(const struct pairs *p, const char *name, long *ret)
{
    const char *value = pairs_get(p, name);
    if (!ret)
        return -EINVAL;
    return value ? urlencoded_number(value, ret) : -ENOENT;
}

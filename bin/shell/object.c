// SPDX-License-Identifier: Apache-2.0
/*
 * Reads the objects of an answer (object.h).
 */
#include "object.h"

#include <monkey/escape.h>

#include <string.h>

struct reader {
    char *at, *end;
};

static void skip_blanks(struct reader *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\r'))
        r->at++;
}

static bool take(struct reader *r, char c)
{
    skip_blanks(r);
    if (r->at == r->end || *r->at != c)
        return false;
    r->at++;
    return true;
}

/* Reads what follows "\u", and writes it as UTF-8; half of a pair becomes a question mark. */
static bool read_unicode(struct reader *r, char **to)
{
    unsigned c = 0;
    if (r->end - r->at < 4)
        return false;
    for (unsigned i = 0; i < 4; i++) {
        int digit = mk_hex_value(*r->at++);
        if (digit < 0)
            return false;
        c = c << 4 | (unsigned)digit;
    }
    if (c == 0 || (c >= 0xd800 && c < 0xe000))
        c = '?';
    if (c >= 0x800)
        *(*to)++ = (char)(0xe0 | c >> 12);
    if (c >= 0x80)
        *(*to)++ = (char)(c >= 0x800 ? 0x80 | (c >> 6 & 0x3f) : 0xc0 | c >> 6);
    *(*to)++ = (char)(c >= 0x80 ? 0x80 | (c & 0x3f) : c);
    return true;
}

static bool read_escape(struct reader *r, char **to)
{
    static const char from[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    if (r->at == r->end)
        return false;
    char c = *r->at++;
    if (c == 'u')
        return read_unicode(r, to);
    const char *found = c ? strchr(from, c) : NULL;
    if (found)
        *(*to)++ = meant[found - from];
    return found != NULL;
}

/* Reads a string behind its first quote, and ends it with a NUL in place of the last one, or before it. */
static const char *read_string(struct reader *r)
{
    char *start = r->at, *to = start;
    while (r->at < r->end && *r->at != '"') {
        char c = *r->at++;
        if (c == '\0' || (c == '\\' && !read_escape(r, &to)))
            return NULL;
        if (c != '\\')
            *to++ = c;
    }
    if (r->at == r->end)
        return NULL;
    r->at++;
    *to = '\0';
    return start;
}

/* Reads a number or a bool. The byte behind it is overwritten when the caller has read it. */
static bool read_plain(struct reader *r, struct object_member *m)
{
    m->value = r->at;
    while (r->at < r->end && *r->at && (mk_hex_value(*r->at) >= 0 || strchr("-+.Etrulsf", *r->at)))
        r->at++;
    size_t n = (size_t)(r->at - m->value);
    bool is_bool = (n == 4 && memcmp(m->value, "true", 4) == 0) || (n == 5 && memcmp(m->value, "false", 5) == 0);
    m->kind = is_bool ? OBJECT_BOOL : OBJECT_NUMBER;
    return n > 0 && r->at < r->end && (is_bool || mk_hex_value(m->value[n - 1]) >= 0);
}

/* Keys are shown as they are. */
static bool is_key(const char *key)
{
    const char *p = key;
    while (*p > 0x20 && *p < 0x7f)
        p++;
    return p > key && !*p;
}

static bool read_member(struct reader *r, struct object_member *m)
{
    if (!take(r, '"') || !(m->key = read_string(r)) || !is_key(m->key) || !take(r, ':'))
        return false;
    m->kind = OBJECT_STRING;
    if (!take(r, '"'))
        return read_plain(r, m);
    m->value = read_string(r);
    return m->value != NULL;
}

bool object_read(char *line, size_t len, struct object *ret)
{
    struct reader r = {line, line + len};
    struct object_member extra;
    ret->n = 0;
    if (!take(&r, '{'))
        return false;
    if (take(&r, '}'))
        return true;
    for (;;) {
        struct object_member *m = ret->n < OBJECT_MEMBERS_MAX ? &ret->items[ret->n++] : &extra;
        if (!read_member(&r, m))
            return false;
        char *behind = r.at;
        bool more = take(&r, ','), ends = !more && take(&r, '}');
        *behind = '\0'; /* ends a number */
        if (!more)
            return ends;
    }
}

const char *object_get(const struct object *o, const char *key)
{
    for (unsigned i = 0; i < o->n; i++)
        if (strcmp(o->items[i].key, key) == 0)
            return o->items[i].value;
    return NULL;
}

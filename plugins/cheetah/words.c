// SPDX-License-Identifier: Apache-2.0
/*
 * Splits the line of a request. Pure: the words are unescaped in place, and are never longer than what stands
 * for them.
 */
#include "cheetah.h"

#include <monkey/base/escape.h>

#include <assert.h>

struct line {
    char *at, *end; /* the rest to read */
    char *to;       /* where the next byte of a word goes; never after `at` */
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static void skip_blanks(struct line *l)
{
    while (l->at < l->end && is_blank(*l->at))
        l->at++;
}

/* Returns false if there is no room for another word. */
static bool add_word(struct words *words, const char *start, const struct line *l)
{
    if (words->n == WORDS_MAX)
        return false;
    words->items[words->n++] = mk_str(start, (size_t)(l->to - start));
    return true;
}

/* ── words ── */

/* Reads up to the end of a word. Returns NULL or a sentence. */
static const char *read_word(struct line *l)
{
    char quote = '\0';
    for (; l->at < l->end && (quote || !is_blank(*l->at)); l->at++) {
        if (quote ? *l->at == quote : *l->at == '"' || *l->at == '\'') {
            quote = quote ? '\0' : *l->at;
            continue;
        }
        if (*l->at == '\\' && quote != '\'') {
            if (++l->at == l->end)
                return "the line ends with a backslash";
        }
        *l->to++ = *l->at;
    }
    return quote ? "a quote is not closed" : NULL;
}

static const char *split_words(struct line *l, struct words *ret)
{
    const char *error = NULL;
    for (skip_blanks(l); l->at < l->end && !error; skip_blanks(l)) {
        l->to = l->at;
        const char *start = l->to;
        error = read_word(l);
        if (!error && !add_word(ret, start, l))
            return "the line has more than 64 words";
    }
    return error;
}

/* ── JSON ── */

/* Writes a character as UTF-8. It takes at most 3 bytes here, or 4 for a pair, and its escape 6 or 12. */
static void put_character(struct line *l, unsigned long c)
{
    if (c < 0x80) {
        *l->to++ = (char)c;
        return;
    }
    unsigned more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const unsigned char first[] = {0, 0xc0, 0xe0, 0xf0};
    *l->to++ = (char)(first[more] | c >> 6 * more);
    while (more--)
        *l->to++ = (char)(0x80 | (c >> 6 * more & 0x3f));
}

/* Reads four hexadecimal digits; -1: they are not there. */
static long read_hex(struct line *l)
{
    long value = 0;
    if (l->end - l->at < 4)
        return -1;
    for (unsigned i = 0; i < 4; i++) {
        int digit = mk_hex_value(*l->at++);
        if (digit < 0)
            return -1;
        value = value << 4 | digit;
    }
    return value;
}

/* Reads what follows "\u". Returns false if it is no character. */
static bool read_unicode(struct line *l)
{
    long c = read_hex(l), low;
    if (c >= 0xd800 && c < 0xdc00) {
        if (l->end - l->at < 2 || l->at[0] != '\\' || l->at[1] != 'u')
            return false;
        l->at += 2;
        low = read_hex(l);
        if (low < 0xdc00 || low >= 0xe000)
            return false;
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
    }
    if (c < 0 || (c >= 0xdc00 && c < 0xe000))
        return false;
    put_character(l, (unsigned long)c);
    return true;
}

/* Reads an escape, from after its backslash. */
static bool read_escape(struct line *l)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    if (l->at == l->end)
        return false;
    char c = *l->at++;
    if (c == 'u')
        return read_unicode(l);
    const char *found = c ? strchr(from, c) : NULL;
    if (found)
        *l->to++ = to[found - from];
    return found != NULL;
}

/* Reads a string, from after its first quote to after its last one. */
static bool read_string(struct line *l)
{
    while (l->at < l->end && *l->at != '"') {
        char c = *l->at++;
        if ((unsigned char)c < 0x20 || (c == '\\' && !read_escape(l)))
            return false;
        if (c != '\\')
            *l->to++ = c;
    }
    return l->at++ < l->end;
}

static const char no_array[] = "a line that begins with [ must be a JSON array of strings";

static const char *split_array(struct line *l, struct words *ret)
{
    l->at++;
    for (skip_blanks(l); l->at < l->end; skip_blanks(l)) {
        if (*l->at++ != '"')
            return no_array;
        l->to = l->at;
        const char *start = l->to;
        if (!read_string(l))
            return no_array;
        if (!add_word(ret, start, l))
            return "the array has more than 64 strings";
        skip_blanks(l);
        if (l->at < l->end && *l->at == ']') {
            l->at++;
            skip_blanks(l);
            return l->at == l->end ? NULL : no_array;
        }
        if (l->at == l->end || *l->at++ != ',')
            return no_array;
    }
    return no_array;
}

const char *words_split(char *line, size_t len, struct words *ret)
{
    struct line l = {line, line + len, line};
    ret->n = 0;
    skip_blanks(&l);
    const char *error = l.at < l.end && *l.at == '[' ? split_array(&l, ret) : split_words(&l, ret);
    assert(l.at <= l.end + 1 && l.to <= l.end);
    return error;
}

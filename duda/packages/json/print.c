// SPDX-License-Identifier: Apache-2.0
/*
 * The text of a tree (print.h). The functions call each other once for each level, of which there are few.
 */
#include "print.h"

#include <cjson/cJSON.h>

#include <duda/duda.h>
#include <duda/packages/json/json.h>

#include "scan.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_BYTES = 256, NUMBER_BYTES = 40 };

static const double exact_max = 9007199254740992; /* 2^53 */

struct printer {
    char *text;
    size_t len, size;
    unsigned depth;
    bool formatted, failed;
};

static void print_tree(struct printer *p, const json_t *item);

/* ── the buffer ── */

static bool reserve_bytes(struct printer *p, size_t n)
{
    assert(p->len <= INT_MAX && (!p->size || p->len < p->size));
    if (p->failed || n > INT_MAX - p->len) {
        p->failed = true;
        return false;
    }
    if (p->len + n < p->size)
        return true;
    size_t size = p->size ? p->size : FIRST_BYTES;
    while (size <= p->len + n)
        size *= 2;
    char *text = mem->realloc(p->text, size);
    p->failed = !text;
    if (text) {
        p->text = text;
        p->size = size;
    }
    return text;
}

static void add_text(struct printer *p, const char *text, size_t len)
{
    if (!reserve_bytes(p, len))
        return;
    memcpy(p->text + p->len, text, len);
    p->len += len;
}

static void add_char(struct printer *p, char c)
{
    add_text(p, &c, 1);
}

static void add_tabs(struct printer *p)
{
    for (unsigned i = 0; i < p->depth; i++)
        add_char(p, '\t');
}

/* ── values ── */

static void print_escape(struct printer *p, unsigned char c)
{
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
    const char *found = strchr(from, c);
    char text[8];
    if (found)
        snprintf(text, sizeof(text), "\\%c", to[found - from]);
    else
        snprintf(text, sizeof(text), "\\u%04x", c);
    add_text(p, text, strlen(text));
}

/* Returns how many bytes at `s` can be copied. */
static size_t measure_plain(const char *s, size_t len)
{
    size_t n = 0;
    while (n < len) {
        unsigned char c = (unsigned char)s[n];
        size_t bytes = c < 0x80 ? 1 : scan_character(s + n, len - n);
        if (c < 0x20 || c == '"' || c == '\\' || bytes == 0)
            break;
        n += bytes;
    }
    return n;
}

static void print_string(struct printer *p, const char *s)
{
    size_t len = s ? strlen(s) : 0;
    add_char(p, '"');
    for (size_t at = 0; at < len; at++) {
        size_t n = measure_plain(s + at, len - at);
        add_text(p, s + at, n);
        at += n;
        if (at < len && (unsigned char)s[at] < 0x80)
            print_escape(p, (unsigned char)s[at]);
        else if (at < len)
            add_text(p, "\xef\xbf\xbd", 3);
    }
    add_char(p, '"');
}

/* Writes the shortest of 15 to 17 digits that is the same double. */
static void format_fraction(char *to, size_t size, double value)
{
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(to, size, "%.*g", digits, value);
        if (strtod(to, NULL) == value) /* NOLINT: the same bits */
            break;
    }
    char *point = to + strspn(to, "-0123456789e+"); /* of the locale, perhaps of several bytes */
    size_t n = strcspn(point, "-0123456789e+");
    if (n) {
        *point = '.';
        memmove(point + 1, point + n, strlen(point + n) + 1);
    }
}

static void print_number(struct printer *p, double value)
{
    char text[NUMBER_BYTES];
    if (!isfinite(value))
        snprintf(text, sizeof(text), "null");
    else if (fabs(value) <= exact_max && value == (double)(long long)value)
        snprintf(text, sizeof(text), "%lld", (long long)value);
    else
        format_fraction(text, sizeof(text), value);
    add_text(p, text, strlen(text));
}

static void print_array(struct printer *p, const json_t *array)
{
    add_char(p, '[');
    for (const json_t *item = array->child; item && !p->failed; item = item->next) {
        print_tree(p, item);
        if (item->next)
            add_text(p, ", ", p->formatted ? 2 : 1);
    }
    add_char(p, ']');
}

static void print_member(struct printer *p, const json_t *item)
{
    if (p->formatted)
        add_tabs(p);
    print_string(p, item->string);
    add_text(p, ":\t", p->formatted ? 2 : 1);
    print_tree(p, item);
    if (item->next)
        add_char(p, ',');
    if (p->formatted)
        add_char(p, '\n');
}

static void print_object(struct printer *p, const json_t *object)
{
    add_text(p, "{\n", p->formatted ? 2 : 1);
    for (const json_t *item = object->child; item && !p->failed; item = item->next)
        print_member(p, item);
    if (p->formatted) {
        p->depth--;
        add_tabs(p);
        p->depth++;
    }
    add_char(p, '}');
}

static void print_container(struct printer *p, const json_t *item)
{
    if (++p->depth > DUDA_JSON_DEPTH_MAX)
        p->failed = true;
    else if (item->type == cJSON_Array)
        print_array(p, item);
    else
        print_object(p, item);
    p->depth--;
}

static void print_tree(struct printer *p, const json_t *item)
{
    if (p->failed)
        return;
    switch (item->type & 0xff) { /* without flags */
    case cJSON_NULL:
        add_text(p, "null", 4);
        break;
    case cJSON_True:
        add_text(p, "true", 4);
        break;
    case cJSON_False:
        add_text(p, "false", 5);
        break;
    case cJSON_Number:
        print_number(p, item->valuedouble);
        break;
    case cJSON_String:
        print_string(p, item->valuestring);
        break;
    case cJSON_Array:
    case cJSON_Object:
        print_container(p, item);
        break;
    default:
        p->failed = true;
    }
}

char *print_value(const struct cJSON *item, bool formatted, size_t *ret_len)
{
    assert(ret_len);
    struct printer p = {.formatted = formatted, .failed = !item};
    if (item)
        print_tree(&p, item);
    add_char(&p, '\0');
    if (p.failed) {
        mem->free(p.text);
        return NULL;
    }
    *ret_len = p.len - 1;
    return p.text;
}

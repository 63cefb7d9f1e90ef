// SPDX-License-Identifier: Apache-2.0
/*
 * Builds lines (line.h): escapes, numbers, times.
 */
#include "line.h"

#include <monkey/time.h>

#include <assert.h>
#include <stdio.h>

/* Returns 0 (never escaped), 1 (a blank) or 2 (always escaped). */
static uint8_t get_char_class(unsigned char c)
{
    if (c == ' ')
        return 1;
    return c < 0x20 || c >= 0x7f || c == '"' || c == '\\' ? 2 : 0;
}

static char *put_escape(char *at, const char *prefix, size_t len, unsigned char c)
{
    memcpy(at, prefix, len);
    at[len] = "0123456789abcdef"[c >> 4];
    at[len + 1] = "0123456789abcdef"[c & 15];
    return at + len + 2;
}

void line_put_value(struct line *l, struct mk_str s, enum line_form form)
{
    assert(line_length(l) + l->left <= LINE_BYTES_MAX);
    const char *prefix = form == LINE_JSON ? "\\u00" : "\\x";
    size_t prefix_len = form == LINE_JSON ? 4 : 2;
    uint8_t class_max = form == LINE_WORD ? 0 : 1;
    char *at = l->at, *stop = at + (l->left > l->kept ? l->left - l->kept : 0);
    size_t i = 0;
    for (; i < s.len; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (MK_LIKELY(get_char_class(c) <= class_max)) {
            if (at == stop)
                break;
            *at++ = (char)c;
            continue;
        }
        if ((size_t)(stop - at) < prefix_len + 2)
            break;
        at = put_escape(at, prefix, prefix_len, c);
    }
    l->cut = l->cut || i < s.len;
    l->left -= (size_t)(at - l->at);
    l->at = at;
}

void line_put_number(struct line *l, uint64_t value)
{
    char digits[20];
    size_t n = sizeof(digits);
    do
        digits[--n] = (char)('0' + value % 10);
    while (value /= 10);
    line_put(l, mk_str(digits + n, sizeof(digits) - n));
}

static_assert(sizeof(((struct line *)0)->clf) <= LINE_VARIABLE_FIXED, "a time is a field of fixed size");

void line_set_time(struct line *l, int64_t second, uint32_t ms)
{
    assert(ms < 1000);
    static const char months[][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    l->ms = ms;
    if (l->second == second && l->clf[0])
        return;
    l->second = second;
    if (!mk_time_iso(second, l->iso))
        mk_time_iso(0, l->iso);
    unsigned month = (unsigned)(l->iso[5] - '0') * 10 + (unsigned)(l->iso[6] - '0');
    snprintf(l->clf, sizeof(l->clf), "%.2s/%s/%.4s:%.8s +0000", l->iso + 8, months[(month - 1) % 12], l->iso,
             l->iso + 11);
}

void line_put_iso(struct line *l)
{
    char ms[] = {'.', (char)('0' + l->ms / 100 % 10), (char)('0' + l->ms / 10 % 10), (char)('0' + l->ms % 10), 'Z'};
    line_put(l, mk_str_c(l->iso));
    line_put(l, mk_str(ms, sizeof(ms)));
}

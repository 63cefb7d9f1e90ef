// SPDX-License-Identifier: Apache-2.0
/*
 * The functions of <monkey/base/str.h> that are too long to be inline.
 */
#include <monkey/base/str.h>

#include <assert.h>

bool mk_is_name_byte(char c, const char *marks)
{
    char low = mk_lower(c);
    return (low >= 'a' && low <= 'z') || (c >= '0' && c <= '9') || (c && strchr(marks, c));
}

bool mk_str_is_name(struct mk_str s, const char *marks)
{
    size_t i = 0;
    while (i < s.len && mk_is_name_byte(s.p[i], marks))
        i++;
    return s.len && i == s.len;
}

bool mk_str_next(struct mk_str *rest, struct mk_str *ret_element)
{
    assert(rest->p || !rest->len);
    while (rest->len) {
        size_t i = 0;
        bool quoted = false;
        for (; i < rest->len && (quoted || rest->p[i] != ','); i++) {
            if (rest->p[i] == '"')
                quoted = !quoted;
            else if (quoted && rest->p[i] == '\\' && i + 1 < rest->len)
                i++;
        }
        *ret_element = mk_str_trim(mk_str(rest->p, i));
        if (i < rest->len)
            i++; /* the comma */
        rest->p += i;
        rest->len -= i;
        if (ret_element->len)
            return true;
    }
    return false;
}

bool mk_str_u64(struct mk_str s, uint64_t max, uint64_t *ret_value)
{
    uint64_t value = 0;
    if (!s.len)
        return false;
    for (size_t i = 0; i < s.len; i++) {
        unsigned digit = (unsigned char)s.p[i] - '0';
        if (digit > 9 || __builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, digit, &value))
            return false;
    }
    if (value > max)
        return false;
    *ret_value = value;
    return true;
}

enum { NAME_MAX_BYTES = 64 };

static unsigned get_min(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* Computes the optimal string alignment distance; keeps three rows of the table at a time. */
unsigned mk_str_distance(struct mk_str a, struct mk_str b)
{
    unsigned rows[3][NAME_MAX_BYTES + 1], *before = rows[0], *last = rows[1], *row = rows[2];

    if (a.len > NAME_MAX_BYTES || b.len > NAME_MAX_BYTES)
        return NAME_MAX_BYTES;
    for (size_t j = 0; j <= b.len; j++)
        last[j] = (unsigned)j;
    for (size_t i = 1; i <= a.len; i++) {
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= b.len; j++) {
            char x = mk_lower(a.p[i - 1]), y = mk_lower(b.p[j - 1]);
            row[j] = get_min(get_min(last[j], row[j - 1]) + 1, last[j - 1] + (x != y));
            if (i > 1 && j > 1 && x == mk_lower(b.p[j - 2]) && mk_lower(a.p[i - 2]) == y)
                row[j] = get_min(row[j], before[j - 2] + 1);
        }
        unsigned *spare = before;
        before = last;
        last = row;
        row = spare;
    }
    return last[b.len];
}

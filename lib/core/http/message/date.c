// SPDX-License-Identifier: Apache-2.0
/*
 * HTTP dates: the three formats. The calendar is that of base/civil.h; validators.c compares dates.
 */
#include "http/message/date.h"
#include "base/civil.h"

#include <assert.h>
#include <errno.h>

static const char weekdays[7][10] = {"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"};
static const char months[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

size_t mk__date_format(int64_t seconds, char out[MK__DATE_BYTES + 1])
{
    char *p = out;
    if (seconds < MK__CIVIL_SECONDS_MIN)
        seconds = MK__CIVIL_SECONDS_MIN;
    if (seconds > MK__CIVIL_SECONDS_MAX)
        seconds = MK__CIVIL_SECONDS_MAX;
    struct mk__civil c = mk__civil_of(seconds);
    memcpy(p, weekdays[c.weekday], 3);
    memcpy(p + 3, ", ", 2);
    p = mk__civil_put(p + 5, c.day, ' ');
    memcpy(p, months[c.month - 1], 3);
    p[3] = ' ';
    p = mk__civil_put(p + 4, c.year / 100, ' ') - 1;
    p = mk__civil_put(p, c.year % 100, ' ');
    p = mk__civil_put(p, c.hour, ':');
    p = mk__civil_put(p, c.minute, ':');
    p = mk__civil_put(p, c.second, ' ');
    assert(p + 3 == out + MK__DATE_BYTES);
    memcpy(p, "GMT", sizeof("GMT"));
    return MK__DATE_BYTES;
}

/*
 * Removes the row that `s` starts with. Compares the first `len` bytes of each row, or with 0 all of it. Returns the
 * index of the row, or -1.
 */
static int read_name(struct mk_str *s, const char *rows, size_t n, size_t row_bytes, size_t len)
{
    for (size_t i = 0; i < n; i++) {
        const char *row = rows + i * row_bytes;
        struct mk_str name = mk_str(row, len ? len : strlen(row));
        if (!mk_str_starts(*s, name))
            continue;
        *s = mk_str(s->p + name.len, s->len - name.len);
        return (int)i;
    }
    return -1;
}

/* Removes `n` digits from `s`; with `padded` the first may be a space. Returns the number, or -1. */
static int read_number(struct mk_str *s, unsigned n, bool padded)
{
    int value = 0;
    if (s->len < n)
        return -1;
    for (unsigned i = 0; i < n; i++) {
        char c = padded && i == 0 && s->p[0] == ' ' ? '0' : s->p[i];
        if (c < '0' || c > '9')
            return -1;
        value = value * 10 + (c - '0');
    }
    *s = mk_str_after(*s, n);
    return value;
}

/* Reads one field of a format; the letters are those of strftime. Returns its value, or -1. */
static int read_field(struct mk_str *s, char field, struct mk__civil *c)
{
    switch (field) {
    case 'a':
        return read_name(s, weekdays[0], 7, sizeof(weekdays[0]), 3);
    case 'A':
        return read_name(s, weekdays[0], 7, sizeof(weekdays[0]), 0);
    case 'b':
        return (c->month = read_name(s, months[0], 12, sizeof(months[0]), 3) + 1) - 1;
    case 'd':
        return c->day = read_number(s, 2, false);
    case 'e':
        return c->day = read_number(s, 2, true);
    case 'H':
        return c->hour = read_number(s, 2, false);
    case 'M':
        return c->minute = read_number(s, 2, false);
    case 'S':
        return c->second = read_number(s, 2, false);
    case 'y':
        return c->year = read_number(s, 2, false);
    default:
        return c->year = read_number(s, 4, false);
    }
}

static bool match_format(struct mk_str s, const char *format, struct mk__civil *ret)
{
    for (const char *f = format; *f; f++) {
        if (*f == '%') {
            if (read_field(&s, *++f, ret) < 0)
                return false;
            continue;
        }
        if (!s.len || s.p[0] != *f)
            return false;
        s = mk_str_after(s, 1);
    }
    return s.len == 0;
}

static bool is_leap(int year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static bool is_valid_date(const struct mk__civil *c)
{
    static const int8_t lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    assert(c->month >= 1 && c->month <= 12);
    int days = lengths[c->month - 1] + (c->month == 2 && is_leap(c->year));
    return c->day >= 1 && c->day <= days && c->hour < 24 && c->minute < 60 && c->second <= 60;
}

/* Sets the latest year with these two digits in which the date is at most 50 years after `now`. */
static void resolve_century(struct mk__civil *c, int64_t now)
{
    struct mk__civil limit = mk__civil_of(now);
    limit.year += 50;
    c->year += limit.year / 100 * 100;
    if (mk__civil_seconds(c) > mk__civil_seconds(&limit))
        c->year -= 100;
}

int mk__date_parse(struct mk_str text, int64_t now, int64_t *ret_seconds)
{
    enum { RFC850 = 1 };
    static const char formats[][28] = {
        "%a, %d %b %Y %H:%M:%S GMT",
        [RFC850] = "%A, %d-%b-%y %H:%M:%S GMT",
        "%a %b %e %H:%M:%S %Y",
    };
    for (size_t i = 0; i < MK_COUNT_OF(formats); i++) {
        struct mk__civil c = {0};
        if (!match_format(text, formats[i], &c))
            continue;
        if (i == RFC850)
            resolve_century(&c, now);
        if (!is_valid_date(&c))
            return -EINVAL;
        *ret_seconds = mk__civil_seconds(&c);
        return 0;
    }
    return -EINVAL;
}

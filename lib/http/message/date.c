// SPDX-License-Identifier: Apache-2.0
/*
 * HTTP dates by arithmetic. Responsible for the calendar and the three formats; validators.c compares dates.
 *
 * Years are counted from March, so that the leap day is the last day of a year.
 */
#include "http/message/date.h"

#include <assert.h>
#include <errno.h>

enum { DAY_SECONDS = 86400, DAYS_400_YEARS = 146097 };

/* 1970-01-01, counted in days from 1 March of the year -400 (so that no number below is negative). */
static const int64_t epoch_days = 719468 + DAYS_400_YEARS;
static const int64_t seconds_min = -62167219200; /* 0000-01-01T00:00:00Z */
static const int64_t seconds_max = 253402300799; /* 9999-12-31T23:59:59Z */

struct civil {
    int year, month, day, hour, minute, second; /* month and day from 1 */
};

static const char weekdays[7][10] = {"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"};
static const char months[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

/* Days from 1 March of year 0 to 1 March of `year`. */
static int64_t days_to_march(int64_t year)
{
    return year * 365 + year / 4 - year / 100 + year / 400;
}

/* Days from 1 March to the first day of the month `n` months later: 31 30 31 30 31, two and a half times. */
static int days_to_month(int n)
{
    return (153 * n + 2) / 5;
}

static int64_t to_seconds(const struct civil *c)
{
    int64_t year = c->year + 400 - (c->month <= 2);
    int64_t days = days_to_march(year) + days_to_month((c->month + 9) % 12) + c->day - 1 - epoch_days;
    return days * DAY_SECONDS + c->hour * 3600 + c->minute * 60 + c->second;
}

/* Converts seconds since 1970 to a date. `*ret_weekday` counts from Sunday. */
static struct civil convert_to_civil(int64_t seconds, int *ret_weekday)
{
    int64_t shifted = seconds + epoch_days * DAY_SECONDS;
    int64_t days = shifted / DAY_SECONDS, year = days * 400 / DAYS_400_YEARS;
    int rest = (int)(shifted % DAY_SECONDS);

    if (days_to_march(year) > days)
        year--;
    else if (days_to_march(year + 1) <= days)
        year++;
    int day = (int)(days - days_to_march(year)), n = (day * 5 + 2) / 153;
    *ret_weekday = (int)((days + 3) % 7); /* day 0 was a Wednesday */
    return (struct civil){
        .year = (int)year - 400 + (n >= 10),
        .month = n < 10 ? n + 3 : n - 9,
        .day = day - days_to_month(n) + 1,
        .hour = rest / 3600,
        .minute = rest / 60 % 60,
        .second = rest % 60,
    };
}

static char *put_two_digits(char *out, int value, char after)
{
    assert(value >= 0 && value < 100);
    out[0] = (char)('0' + value / 10);
    out[1] = (char)('0' + value % 10);
    out[2] = after;
    return out + 3;
}

size_t mk__date_format(int64_t seconds, char out[MK__DATE_BYTES + 1])
{
    int weekday;
    char *p = out;

    seconds = seconds < seconds_min ? seconds_min : seconds > seconds_max ? seconds_max : seconds;
    struct civil c = convert_to_civil(seconds, &weekday);
    memcpy(p, weekdays[weekday], 3);
    memcpy(p + 3, ", ", 2);
    p = put_two_digits(p + 5, c.day, ' ');
    memcpy(p, months[c.month - 1], 3);
    p[3] = ' ';
    p = put_two_digits(p + 4, c.year / 100, ' ') - 1;
    p = put_two_digits(p, c.year % 100, ' ');
    p = put_two_digits(p, c.hour, ':');
    p = put_two_digits(p, c.minute, ':');
    p = put_two_digits(p, c.second, ' ');
    assert(p + 3 == out + MK__DATE_BYTES);
    memcpy(p, "GMT", sizeof("GMT"));
    return MK__DATE_BYTES;
}

/*
 * Removes the row that `s` starts with. Compares the first `len` bytes of each row, or with 0 all of it. Returns the
 * index of the row, or -1.
 */
static int cut_name(struct mk_str *s, const char *rows, size_t n, size_t row_bytes, size_t len)
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
static int cut_number(struct mk_str *s, unsigned n, bool padded)
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
    *s = mk_str(s->p + n, s->len - n);
    return value;
}

/* Reads one field of a format; the letters are those of strftime. Returns its value, or -1. */
static int cut_field(struct mk_str *s, char field, struct civil *c)
{
    switch (field) {
    case 'a':
        return cut_name(s, weekdays[0], 7, sizeof(weekdays[0]), 3);
    case 'A':
        return cut_name(s, weekdays[0], 7, sizeof(weekdays[0]), 0);
    case 'b':
        return (c->month = cut_name(s, months[0], 12, sizeof(months[0]), 3) + 1) - 1;
    case 'd':
        return c->day = cut_number(s, 2, false);
    case 'e':
        return c->day = cut_number(s, 2, true);
    case 'H':
        return c->hour = cut_number(s, 2, false);
    case 'M':
        return c->minute = cut_number(s, 2, false);
    case 'S':
        return c->second = cut_number(s, 2, false);
    case 'y':
        return c->year = cut_number(s, 2, false);
    default:
        return c->year = cut_number(s, 4, false);
    }
}

static bool match_format(struct mk_str s, const char *format, struct civil *ret)
{
    for (const char *f = format; *f; f++) {
        if (*f == '%') {
            if (cut_field(&s, *++f, ret) < 0)
                return false;
            continue;
        }
        if (!s.len || s.p[0] != *f)
            return false;
        s = mk_str(s.p + 1, s.len - 1);
    }
    return s.len == 0;
}

static bool is_leap(int year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static bool is_valid_date(const struct civil *c)
{
    static const int8_t lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    assert(c->month >= 1 && c->month <= 12);
    int days = lengths[c->month - 1] + (c->month == 2 && is_leap(c->year));
    return c->day >= 1 && c->day <= days && c->hour < 24 && c->minute < 60 && c->second <= 60;
}

/* Sets the latest year with these two digits in which the date is at most 50 years after `now`. */
static void resolve_century(struct civil *c, int64_t now)
{
    int weekday;
    struct civil limit = convert_to_civil(now, &weekday);
    limit.year += 50;
    c->year += limit.year / 100 * 100;
    if (to_seconds(c) > to_seconds(&limit))
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
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        struct civil c = {0};
        if (!match_format(text, formats[i], &c))
            continue;
        if (i == RFC850)
            resolve_century(&c, now);
        if (!is_valid_date(&c))
            return -EINVAL;
        *ret_seconds = to_seconds(&c);
        return 0;
    }
    return -EINVAL;
}

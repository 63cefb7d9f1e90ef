// SPDX-License-Identifier: Apache-2.0
/*
 * The calendar of civil.h. Years are counted from March, so that the leap day is the last day of a year.
 */
#include "base/civil.h"

#include <monkey/base/time.h>

#include <assert.h>

enum { DAY_SECONDS = 86400, DAYS_400_YEARS = 146097 };

/* 1970-01-01, counted in days from 1 March of the year -400 (so that no number below is negative). */
static const int64_t epoch_days = 719468 + DAYS_400_YEARS;

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

int64_t mk__civil_seconds(const struct mk__civil *c)
{
    int64_t year = c->year + 400 - (c->month <= 2);
    int64_t days = days_to_march(year) + days_to_month((c->month + 9) % 12) + c->day - 1 - epoch_days;
    return days * DAY_SECONDS + c->hour * 3600 + c->minute * 60 + c->second;
}

struct mk__civil mk__civil_of(int64_t seconds)
{
    assert(seconds >= MK__CIVIL_SECONDS_MIN && seconds <= MK__CIVIL_SECONDS_MAX);
    int64_t shifted = seconds + epoch_days * DAY_SECONDS;
    int64_t days = shifted / DAY_SECONDS, year = days * 400 / DAYS_400_YEARS;
    int rest = (int)(shifted % DAY_SECONDS);

    if (days_to_march(year) > days)
        year--;
    else if (days_to_march(year + 1) <= days)
        year++;
    int day = (int)(days - days_to_march(year)), n = (day * 5 + 2) / 153;
    return (struct mk__civil){
        .year = (int)year - 400 + (n >= 10),
        .month = n < 10 ? n + 3 : n - 9,
        .day = day - days_to_month(n) + 1,
        .hour = rest / 3600,
        .minute = rest / 60 % 60,
        .second = rest % 60,
        .weekday = (int)((days + 3) % 7), /* day 0 was a Wednesday */
    };
}

char *mk__civil_put(char *out, int value, char after)
{
    assert(value >= 0 && value < 100);
    out[0] = (char)('0' + value / 10);
    out[1] = (char)('0' + value % 10);
    out[2] = after;
    return out + 3;
}

size_t mk_time_iso(int64_t unix_seconds, char to[MK_TIME_ISO_BYTES])
{
    to[0] = '\0';
    if (unix_seconds < MK__CIVIL_SECONDS_MIN || unix_seconds > MK__CIVIL_SECONDS_MAX)
        return 0;
    struct mk__civil c = mk__civil_of(unix_seconds);
    char *p = mk__civil_put(to, c.year / 100, '0') - 1;
    p = mk__civil_put(p, c.year % 100, '-');
    p = mk__civil_put(p, c.month, '-');
    p = mk__civil_put(p, c.day, 'T');
    p = mk__civil_put(p, c.hour, ':');
    p = mk__civil_put(p, c.minute, ':');
    p = mk__civil_put(p, c.second, '\0');
    assert(p == to + MK_TIME_ISO_BYTES);
    return MK_TIME_ISO_BYTES - 1;
}

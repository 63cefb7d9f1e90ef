// SPDX-License-Identifier: Apache-2.0
/* The calendar, and times as text. The dates are those of date(1) -u. */
#include "testing.h"

#include "base/civil.h"

#include <monkey/base/time.h>

TEST(times_as_text)
{
    static const struct {
        int64_t seconds;
        const char *text;
    } cases[] = {
        {0, "1970-01-01T00:00:00"},
        {-1, "1969-12-31T23:59:59"},
        {951782399, "2000-02-28T23:59:59"},
        {951782400, "2000-02-29T00:00:00"},  /* a leap year, as it can be divided by 400 */
        {4107542400, "2100-03-01T00:00:00"}, /* none */
        {1795376700, "2026-11-22T19:45:00"},
        {MK__CIVIL_SECONDS_MIN, "0000-01-01T00:00:00"},
        {MK__CIVIL_SECONDS_MIN - 1, ""},
        {MK__CIVIL_SECONDS_MAX, "9999-12-31T23:59:59"},
        {MK__CIVIL_SECONDS_MAX + 1, ""},
        {INT64_MIN, ""},
        {INT64_MAX, ""},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[MK_TIME_ISO_BYTES];
        assert_int_equal(mk_time_iso(cases[i].seconds, text), strlen(cases[i].text));
        assert_string_equal(text, cases[i].text);
    }
}

TEST(dates_and_back)
{
    enum { DAY_SECONDS = 86400, DAYS = 146097 }; /* of 400 years */
    struct mk__civil before = mk__civil_of(-(int64_t)DAY_SECONDS * DAYS / 2);
    for (int64_t s = -(int64_t)DAY_SECONDS * DAYS / 2 + DAY_SECONDS; s <= (int64_t)DAY_SECONDS * DAYS / 2;
         s += DAY_SECONDS) {
        struct mk__civil c = mk__civil_of(s);
        assert_int_equal(mk__civil_seconds(&c), s);
        assert_int_equal(c.weekday, (before.weekday + 1) % 7);
        bool next_day = c.day == before.day + 1 && c.month == before.month && c.year == before.year;
        assert_true(next_day || (c.day == 1 && (c.month == before.month + 1 || c.month == 1)));
        before = c;
    }
}

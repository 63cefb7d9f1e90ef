// SPDX-License-Identifier: Apache-2.0
/* HTTP dates: three formats, the calendar, the century; each case flush against a guard page. */
#include "testing.h"

#include <errno.h>
#include <time.h>

#include "http/message/date.h"

static const int64_t now_2026 = 1795149843; /* 2026-11-20T05:04:03Z */

TEST(formats)
{
    static const struct {
        int64_t seconds;
        const char *text;
    } cases[] = {
        {0, "Thu, 01 Jan 1970 00:00:00 GMT"},
        {784111777, "Sun, 06 Nov 1994 08:49:37 GMT"},
        {951782399, "Mon, 28 Feb 2000 23:59:59 GMT"},
        {951782400, "Tue, 29 Feb 2000 00:00:00 GMT"},
        {4107542400, "Mon, 01 Mar 2100 00:00:00 GMT"},
        {253402300799, "Fri, 31 Dec 9999 23:59:59 GMT"},
        {253402300800, "Fri, 31 Dec 9999 23:59:59 GMT"},
        {INT64_MAX, "Fri, 31 Dec 9999 23:59:59 GMT"},
        {-1, "Wed, 31 Dec 1969 23:59:59 GMT"},
        {-62167219200, "Sat, 01 Jan 0000 00:00:00 GMT"},
        {INT64_MIN, "Sat, 01 Jan 0000 00:00:00 GMT"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char out[MK__DATE_BYTES + 1];
        assert_int_equal(mk__date_format(cases[i].seconds, out), 29);
        assert_string_equal(out, cases[i].text);
    }
}

/* Each day of 10,000 years: formats like the C library, and parses what it formats. */
TEST(agrees_with_the_calendar)
{
    int64_t second = 0;
    for (int64_t day = -719528; day < 2932897; day += 1 + (day < -40000 || day > 60000) * 13) {
        char out[MK__DATE_BYTES + 1], expected[40];
        second = (second * 31 + 7919) % 86400;
        time_t t = day * 86400 + second;
        int64_t back;
        struct tm tm;
        gmtime_r(&t, &tm);
        size_t n = strftime(expected, sizeof(expected), "%a, %d %b ", &tm);
        for (int i = 3, year = tm.tm_year + 1900; i >= 0; i--, year /= 10)
            expected[n + (size_t)i] = (char)('0' + year % 10);
        strftime(expected + n + 4, sizeof(expected) - n - 4, " %H:%M:%S GMT", &tm);
        mk__date_format(t, out);
        assert_string_equal(out, expected);
        assert_int_equal(mk__date_parse(mk_str(out, 29), now_2026, &back), 0);
        assert_int_equal(back, t);
    }
}

static const struct {
    const char *text;
    int64_t seconds; /* INT64_MIN: not valid */
} cases[] = {
    {"Sun, 06 Nov 1994 08:49:37 GMT", 784111777},
    {"Sunday, 06-Nov-94 08:49:37 GMT", 784111777},
    {"Sun Nov  6 08:49:37 1994", 784111777},
    {"Sun Nov 06 08:49:37 1994", 784111777},
    {"Wed Nov 16 08:49:37 1994", 784975777},
    {"Mon, 06 Nov 1994 08:49:37 GMT", 784111777},
    {"Wednesday, 06-Nov-94 08:49:37 GMT", 784111777},
    {"Tue, 29 Feb 2000 00:00:00 GMT", 951782400},
    {"Sat, 31 Dec 2016 23:59:60 GMT", 1483228800},
    {"Fri, 31 Dec 9999 23:59:59 GMT", 253402300799},
    {"", INT64_MIN},
    {"0", INT64_MIN},
    {"-1", INT64_MIN},
    {"784111777", INT64_MIN},
    {"Sun, 06 Nov 1994 08:49:37", INT64_MIN},
    {"Sun, 06 Nov 1994 08:49:37 ", INT64_MIN},
    {"Sun, 06 Nov 1994 08:49:37 GM", INT64_MIN},
    {"Sun, 06 Nov 1994 08:49:37 GMTx", INT64_MIN},
    {"Sun, 06 Nov 1994 08:49:37 GMT ", INT64_MIN},
    {" Sun, 06 Nov 1994 08:49:37 GMT", INT64_MIN},
    {"Sun, 06 Nov 1994 08:49:37 UTC", INT64_MIN},
    {"Sun, 06 Nov 1994 08:49:37 +0000", INT64_MIN},
    {"sun, 06 Nov 1994 08:49:37 GMT", INT64_MIN},
    {"Sun, 06 nov 1994 08:49:37 GMT", INT64_MIN},
    {"Sun, 06 Nov 1994 08:49:37 gmt", INT64_MIN},
    {"Son, 06 Nov 1994 08:49:37 GMT", INT64_MIN},
    {"Sunday, 06 Nov 1994 08:49:37 GMT", INT64_MIN},
    {"Sun, 06-Nov-94 08:49:37 GMT", INT64_MIN},
    {"Sunday, 06-Nov-1994 08:49:37 GMT", INT64_MIN},
    {"Sun, 6 Nov 1994 08:49:37 GMT", INT64_MIN},
    {"Sun,  6 Nov 1994 08:49:37 GMT", INT64_MIN},
    {"Sun, 06 Nov 994 08:49:37 GMT", INT64_MIN},
    {"Sun, 06 Nov 01994 08:49:37 GMT", INT64_MIN},
    {"Sun, 06 Nov 1994 8:49:37 GMT", INT64_MIN},
    {"Sun, 06 Nov 1994 08:49 GMT", INT64_MIN},
    {"Sun Nov 6 08:49:37 1994", INT64_MIN},
    {"Sun Nov  6 08:49:37 1994 GMT", INT64_MIN},
    {"Sun Nov   08:49:37 1994", INT64_MIN},
    {"Sun, 00 Nov 1994 08:49:37 GMT", INT64_MIN},
    {"Sun, 31 Nov 1994 08:49:37 GMT", INT64_MIN},
    {"Sun, 29 Feb 1900 08:49:37 GMT", INT64_MIN},
    {"Sun, 29 Feb 2023 08:49:37 GMT", INT64_MIN},
    {"Sun, 06 Nov 1994 24:00:00 GMT", INT64_MIN},
    {"Sun, 06 Nov 1994 08:60:37 GMT", INT64_MIN},
    {"Sun, 06 Nov 1994 08:49:61 GMT", INT64_MIN},
    {"Sun, -6 Nov 1994 08:49:37 GMT", INT64_MIN},
};

TEST(parses)
{
    for (size_t i = 0; i < COUNT(cases); i++) {
        size_t len = strlen(cases[i].text);
        char *bytes = mk_test_guarded(cases[i].text, len);
        int64_t seconds = INT64_MIN;
        int result = mk__date_parse(mk_str(bytes, len), now_2026, &seconds);
        if (seconds != cases[i].seconds || result != (seconds == INT64_MIN ? -EINVAL : 0))
            fail_msg("%s: %d %ld", cases[i].text, result, (long)seconds);
        mk_test_unguard(bytes, len);
    }
}

/* No prefix of a date is a date, and nothing after it is read. */
TEST(prefixes)
{
    static const char *const texts[] = {
        "Sun, 06 Nov 1994 08:49:37 GMT",
        "Wednesday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994",
    };
    for (size_t i = 0; i < COUNT(texts); i++)
        for (size_t len = 0; len < strlen(texts[i]); len++) {
            char *bytes = mk_test_guarded(texts[i], len);
            int64_t seconds;
            assert_int_equal(mk__date_parse(mk_str(bytes, len), now_2026, &seconds), -EINVAL);
            mk_test_unguard(bytes, len);
        }
}

/* RFC 9110 section 5.6.7: a two-digit year is never more than 50 years ahead. */
TEST(settles_the_century)
{
    static const struct {
        const char *now, *text, *meant;
    } years[] = {
        {"Fri, 20 Nov 2026 05:04:03 GMT", "Friday, 20-Nov-76 05:04:03 GMT", "Fri, 20 Nov 2076 05:04:03 GMT"},
        {"Fri, 20 Nov 2026 05:04:03 GMT", "Friday, 20-Nov-76 05:04:04 GMT", "Sat, 20 Nov 1976 05:04:04 GMT"},
        {"Fri, 20 Nov 2026 05:04:03 GMT", "Friday, 01-Jan-00 00:00:00 GMT", "Sat, 01 Jan 2000 00:00:00 GMT"},
        {"Fri, 20 Nov 2026 05:04:03 GMT", "Friday, 01-Jan-99 00:00:00 GMT", "Fri, 01 Jan 1999 00:00:00 GMT"},
        {"Tue, 01 Jan 2080 00:00:00 GMT", "Friday, 01-Jan-05 00:00:00 GMT", "Thu, 01 Jan 2105 00:00:00 GMT"},
        {"Tue, 01 Jan 2080 00:00:00 GMT", "Friday, 01-Jan-99 00:00:00 GMT", "Thu, 01 Jan 2099 00:00:00 GMT"},
    };
    for (size_t i = 0; i < COUNT(years); i++) {
        int64_t now, seconds;
        char out[MK__DATE_BYTES + 1];
        assert_int_equal(mk__date_parse(mk_str_c(years[i].now), 0, &now), 0);
        assert_int_equal(mk__date_parse(mk_str_c(years[i].text), now, &seconds), 0);
        mk__date_format(seconds, out);
        assert_string_equal(out, years[i].meant);
    }
}

// SPDX-License-Identifier: Apache-2.0
/*
 * The object `xtime`.
 */
#include "objects.h"

#include <monkey/buf.h>
#include <monkey/request.h>

#include <stdio.h>
#include <time.h>

enum { HOUR_SECONDS = 3600, YEAR_0 = 1900, YEAR_MAX = 9999 };

static int64_t get_now(void)
{
    return time(NULL);
}

static int64_t get_next_hours(int hours)
{
    return get_now() + (int64_t)hours * HOUR_SECONDS;
}

static int64_t get_tomorrow(void)
{
    return get_next_hours(24);
}

static uint64_t get_ticks_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Returns whether the time can be written with a year of four digits. */
static bool split_time(int64_t seconds, struct tm *ret)
{
    time_t t = (time_t)seconds;
    return gmtime_r(&t, ret) && ret->tm_year + YEAR_0 >= 1 && ret->tm_year + YEAR_0 <= YEAR_MAX;
}

static char *write_http_date(int64_t seconds, char *text, size_t size)
{
    struct mk_buf out;
    struct tm t;
    if (!text || size < DUDA_HTTP_DATE_BYTES || !split_time(seconds, &t))
        return NULL;
    mk_buf_init_fixed(&out, text, size);
    mk_date_write(&out, seconds);
    mk_buf_cstr(&out);
    return text;
}

static char *write_iso_date(int64_t seconds, char *text, size_t size)
{
    struct tm t;
    if (!text || size < DUDA_ISO_DATE_BYTES || !split_time(seconds, &t))
        return NULL;
    snprintf(text, size, "%04d-%02d-%02dT%02d:%02d:%02dZ", t.tm_year + YEAR_0, t.tm_mon + 1, t.tm_mday, t.tm_hour,
             t.tm_min, t.tm_sec);
    return text;
}

const struct duda_api_xtime object_xtime = {
    .now = get_now,
    .tomorrow = get_tomorrow,
    .next_hours = get_next_hours,
    .ticks_ms = get_ticks_ms,
    .http_date = write_http_date,
    .iso_date = write_iso_date,
};

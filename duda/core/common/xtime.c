// SPDX-License-Identifier: Apache-2.0
/*
 * The object `xtime`.
 */
#include "objects.h"

#include <monkey/base/buf.h>
#include <monkey/base/time.h>
#include <monkey/request.h>

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { HOUR_SECONDS = 3600 };

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

/* Writes the time without its zone. Returns false if its year is not one of 1 to 9999. */
static bool write_iso(int64_t seconds, char iso[MK_TIME_ISO_BYTES])
{
    return mk_time_iso(seconds, iso) && strncmp(iso, "0000", 4) != 0;
}

static char *write_http_date(int64_t seconds, char *text, size_t size)
{
    struct mk_buf out;
    char iso[MK_TIME_ISO_BYTES];
    if (!text || size < DUDA_HTTP_DATE_BYTES || !write_iso(seconds, iso))
        return NULL;
    mk_buf_init_fixed(&out, text, size);
    mk_date_write(&out, seconds);
    mk_buf_cstr(&out);
    return text;
}

static char *write_iso_date(int64_t seconds, char *text, size_t size)
{
    char iso[MK_TIME_ISO_BYTES];
    if (!text || size < DUDA_ISO_DATE_BYTES || !write_iso(seconds, iso))
        return NULL;
    snprintf(text, size, "%sZ", iso);
    return text;
}

const struct duda_api_xtime object_xtime = {
    .now = get_now,
    .tomorrow = get_tomorrow,
    .next_hours = get_next_hours,
    .ticks_ms = mk_time_monotonic_ms,
    .http_date = write_http_date,
    .iso_date = write_iso_date,
};

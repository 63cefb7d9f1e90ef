// SPDX-License-Identifier: Apache-2.0
/*
 * The object `xtime`: times in seconds since 1970, and how they are written. Any thread.
 */
#ifndef DUDA_XTIME_H
#define DUDA_XTIME_H

#include "types.h"

enum {
    DUDA_HTTP_DATE_BYTES = 30, /* "Sun, 06 Nov 1994 08:49:37 GMT" with its NUL */
    DUDA_ISO_DATE_BYTES = 21,  /* "1994-11-06T08:49:37Z" with its NUL */
};

struct duda_api_xtime {
    /* Return the time now, in 24 hours, and in `hours` hours. */
    int64_t (*now)(void);
    int64_t (*tomorrow)(void);
    int64_t (*next_hours)(int hours);
    /* Returns milliseconds of a clock that is never set, to measure durations. */
    uint64_t (*ticks_ms)(void);
    /*
     * Write a time as HTTP headers have it (RFC 9110 section 5.6.7), and by RFC 3339, with a NUL.
     * Return `text`, or NULL: `size` is too small, or the year is not in 1 to 9999.
     */
    char *(*http_date)(int64_t seconds, char *text, size_t size);
    char *(*iso_date)(int64_t seconds, char *text, size_t size);
};

DUDA_OBJECT(struct duda_api_xtime, xtime)

#endif

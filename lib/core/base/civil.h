// SPDX-License-Identifier: Apache-2.0
/*
 * The calendar: seconds since 1970 and dates in UTC, by arithmetic. Async-signal-safe.
 */
#ifndef MK_BASE_CIVIL_H
#define MK_BASE_CIVIL_H

#include <stdint.h>

struct mk__civil {
    int year, month, day, hour, minute, second; /* month and day from 1 */
    int weekday;                                /* from Sunday; mk__civil_seconds() does not read it */
};

/* The years 0 to 9999. */
#define MK__CIVIL_SECONDS_MIN INT64_C(-62167219200)
#define MK__CIVIL_SECONDS_MAX INT64_C(253402300799)

/* Converts seconds between the two limits. */
struct mk__civil mk__civil_of(int64_t seconds);
/* Returns the seconds of a date whose fields are valid. */
int64_t mk__civil_seconds(const struct mk__civil *c);
/* Writes two digits and another byte. Returns what follows them. */
char *mk__civil_put(char *out, int value, char after);

#endif

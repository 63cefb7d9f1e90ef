// SPDX-License-Identifier: Apache-2.0
/*
 * HTTP dates (RFC 9110 section 5.6.7). Pure: no locale, no time zone, no clock.
 */
#ifndef MK_HTTP_MESSAGE_DATE_H
#define MK_HTTP_MESSAGE_DATE_H

#include <stddef.h>
#include <stdint.h>

#include <monkey/base/str.h>

enum { MK__DATE_BYTES = 29 };

/*
 * Writes `Sun, 06 Nov 1994 08:49:37 GMT` and a NUL. Seconds outside the years 0000 to 9999 are moved to the nearest end
 * of them. Returns MK__DATE_BYTES.
 */
size_t mk__date_format(int64_t seconds, char out[MK__DATE_BYTES + 1]);

/*
 * Parses the three formats strictly and case-sensitively. A two-digit year is at most 50 years after `now`. The weekday
 * need not fit the date. Second 60 is the first second of the next minute. Returns 0 or -EINVAL.
 */
int mk__date_parse(struct mk_str text, int64_t now, int64_t *ret_seconds);

#endif

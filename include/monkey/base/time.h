// SPDX-License-Identifier: Apache-2.0
/*
 * Times as text, and a clock for what has no loop. HTTP's format is that of mk_date_write() in <monkey/request.h>.
 */
#ifndef MONKEY_TIME_H
#define MONKEY_TIME_H

#include <stddef.h>
#include <stdint.h>

#include "../status.h"

MK_C_BEGIN

enum { MK_TIME_ISO_BYTES = 20 };
/*
 * Writes a time in UTC as "2026-11-22T19:45:00" and a NUL (RFC 3339 section 5.6); a fraction and "Z" are the caller's.
 * Any thread; async-signal-safe.
 * Returns 19, or 0 and an empty text if the year is not one of 0 to 9999.
 */
MK_API size_t mk_time_iso(int64_t unix_seconds, char to[MK_TIME_ISO_BYTES]);

/* Returns CLOCK_MONOTONIC in milliseconds. Any thread; no system call. A loop has mk_loop_now_ms(). */
MK_API uint64_t mk_time_monotonic_ms(void);

MK_C_END

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * How often the log may repeat itself: a condition that goes on is told again after a while, not each time.
 */
#ifndef MK_BASE_LOG_H
#define MK_BASE_LOG_H

#include <monkey/log.h>

#include <stdint.h>

enum { MK__LOG_REPEAT_MS = 10000 };

/* May a condition that goes on be told (again)? `*last_ms` starts as 0 and is the caller's memory of it. */
static inline bool mk__log_is_due(uint64_t *last_ms, uint64_t now_ms)
{
    if (*last_ms && now_ms - *last_ms < MK__LOG_REPEAT_MS)
        return false;
    *last_ms = now_ms;
    return true;
}

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * How often the log reports a condition that persists: once in a while instead of each time; and how many lines it has
 * lost.
 */
#ifndef MK_BASE_LOG_H
#define MK_BASE_LOG_H

#include <monkey/log.h>

#include <stdint.h>

enum { MK__LOG_REPEAT_MS = 10000 };

/*
 * Returns whether a condition that persists is to be logged (again). `*last_ms` starts as 0 and holds the time of the
 * last line.
 */
static inline bool mk__log_is_due(uint64_t *last_ms, uint64_t now_ms)
{
    if (*last_ms && now_ms - *last_ms < MK__LOG_REPEAT_MS)
        return false;
    *last_ms = now_ms;
    return true;
}

/* Returns how many lines were lost since the last call, for a counter. Any thread. */
unsigned mk__log_take_lost(void);

#endif

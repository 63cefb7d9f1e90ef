// SPDX-License-Identifier: Apache-2.0
/*
 * Counts the results of checks (health.h).
 */
#include "health.h"

enum { FAST_SHARE = 5, FAST_MS_MIN = 100 };
enum { JITTER_MIN = 100, JITTER_MAX = 250 }; /* per mille */

struct health_state health_next(struct health_state s, const struct health_rules *rules, bool has_passed)
{
    bool is_first = s.in_row == 0;
    s.in_row = has_passed == s.has_passed && s.in_row < UINT32_MAX ? s.in_row + 1 : 1;
    s.has_passed = has_passed;
    if (is_first || s.in_row >= (has_passed ? rules->up : rules->down))
        s.health = has_passed ? HEALTH_UP : HEALTH_DOWN;
    return s;
}

/* Tells whether results of the other kind have begun. */
static bool is_changing(const struct health_state *s)
{
    return s->in_row && s->has_passed != (s->health == HEALTH_UP);
}

uint32_t health_get_wait_ms(const struct health_state *s, const struct health_rules *rules, uint32_t random)
{
    uint32_t ms = is_changing(s) ? rules->interval_ms / FAST_SHARE : rules->interval_ms;
    uint64_t less = (uint64_t)ms * (JITTER_MIN + random % (JITTER_MAX - JITTER_MIN + 1)) / 1000;
    ms -= (uint32_t)less;
    return ms > FAST_MS_MIN ? ms : FAST_MS_MIN;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * A hierarchical timing wheel with a tick of one millisecond:
 *
 *     level 0   64 slots of 1 ms       ──► fires
 *     level 1   64 slots of 64 ms      ──► moves to level 0 when its slot is reached
 *     ...
 *     level 4   64 slots of 4.6 h      (12 days; a later deadline is inserted again then)
 *
 * Arming and cancelling are O(1). Moving a deadline later, as every request does with the timer of its connection, only
 * writes a number: the timer is inserted again when its slot is reached. A bit per slot tells whether it may hold
 * timers, so that the next wake-up is found without visiting the slots.
 */
#ifndef MK_LOOP_TIMER_H
#define MK_LOOP_TIMER_H

#include <monkey/loop.h>

enum { MK__WHEEL_LEVELS = 5, MK__WHEEL_SLOTS = 64 };

struct mk__wheel {
    uint64_t now_ms;  /* all timers with a deadline up to this time have fired */
    uint64_t next_ms; /* the time of the first slot that may hold timers; UINT64_MAX: there is none */
    uint64_t used[MK__WHEEL_LEVELS];
    struct mk_list slots[MK__WHEEL_LEVELS][MK__WHEEL_SLOTS];
};

void mk__wheel_init(struct mk__wheel *wheel, uint64_t now_ms);
/* Sets the deadline of a timer, armed or not; one that has passed fires with the next mk__wheel_advance(). */
void mk__wheel_arm(struct mk__wheel *wheel, struct mk_timer *timer, uint64_t deadline_ms);
/* Returns the time at which mk__wheel_advance() must be called next; UINT64_MAX when the wheel is empty. */
static inline uint64_t mk__wheel_next_ms(const struct mk__wheel *wheel)
{
    return wheel->next_ms;
}

/* Visits the slots that begin up to `now_ms`. */
void mk__wheel_expire(struct mk__wheel *wheel, uint64_t now_ms);

/* Fires all timers that are due at `now_ms`. */
static inline void mk__wheel_advance(struct mk__wheel *wheel, uint64_t now_ms)
{
    if (wheel->next_ms <= now_ms)
        mk__wheel_expire(wheel, now_ms);
    if (now_ms > wheel->now_ms)
        wheel->now_ms = now_ms;
}

#endif

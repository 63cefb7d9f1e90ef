// SPDX-License-Identifier: Apache-2.0
/*
 * What the results of checks say of a server, and when the next check is due. Pure.
 *
 *     unknown ── the first result ─► up ── CheckDown failures in a row ─► down
 *                                    up ◄── CheckUp successes in a row ── down
 */
#ifndef UPSTREAM_HEALTH_H
#define UPSTREAM_HEALTH_H

#include <stdbool.h>
#include <stdint.h>

/* A server that is not down may get requests. */
enum health { HEALTH_UNKNOWN, HEALTH_UP, HEALTH_DOWN };

struct health_rules {
    uint32_t down, up; /* results in a row */
    uint32_t interval_ms;
};

/* All zeros: there was no result. */
struct health_state {
    uint8_t health;  /* enum health */
    bool has_passed; /* the last result, and how often it came in a row */
    uint32_t in_row; /* 0: the next result decides at once */
};

/* Returns the state after a result. */
struct health_state health_next(struct health_state state, const struct health_rules *rules, bool has_passed);
/*
 * Returns how long to wait until the next check: the interval less 10 to 25 % by `random`; a fifth of it, but not less
 * than 100 ms, while the last results contradict the state.
 */
uint32_t health_get_wait_ms(const struct health_state *state, const struct health_rules *rules, uint32_t random);

#endif

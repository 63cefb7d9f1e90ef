// SPDX-License-Identifier: Apache-2.0
/*
 * Time as an argument: the loop calls these functions, so that unit tests can use their own clock.
 */
#ifndef MK_BASE_CLOCK_H
#define MK_BASE_CLOCK_H

#include <stdint.h>

struct mk__clock {
    uint64_t (*now_ms)(void *ctx);      /* monotonic, for timers */
    uint64_t (*now_us)(void *ctx);      /* the same clock, at full resolution; takes longer to read */
    int64_t (*wall_seconds)(void *ctx); /* seconds since 1970, for `Date` and the age of files */
    void *ctx;
};

/* CLOCK_MONOTONIC and CLOCK_REALTIME; their coarse variants (resolution: one kernel tick) except for now_us. */
extern const struct mk__clock mk__clock_system;

#endif

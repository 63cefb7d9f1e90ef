// SPDX-License-Identifier: Apache-2.0
/*
 * Time as an argument: the loop asks this table, so that unit tests can run on a clock of their own.
 */
#ifndef MK_BASE_CLOCK_H
#define MK_BASE_CLOCK_H

#include <stdint.h>

struct mk__clock {
    uint64_t (*now_ms)(void *ctx);      /* monotonic, for timers */
    uint64_t (*now_us)(void *ctx);      /* the same clock, exactly and more expensive */
    int64_t (*wall_seconds)(void *ctx); /* seconds since 1970, for Date and file ages */
    void *ctx;
};

/* CLOCK_MONOTONIC and CLOCK_REALTIME; coarse (one tick of the kernel) but for now_us. */
extern const struct mk__clock mk__clock_system;

#endif

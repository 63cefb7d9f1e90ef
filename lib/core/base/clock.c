// SPDX-License-Identifier: Apache-2.0
/*
 * The system's clocks (base/clock.h). Reading them takes no system call: the kernel maps them into the process.
 */
#include "base/clock.h"

#include <monkey/base/time.h>

#include <stddef.h>
#include <time.h>

uint64_t mk_time_monotonic_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static uint64_t now_ms(void *ctx)
{
    struct timespec now;
    (void)ctx;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static uint64_t now_us(void *ctx)
{
    struct timespec now;
    (void)ctx;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static int64_t wall_seconds(void *ctx)
{
    struct timespec now;
    (void)ctx;
    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    return now.tv_sec;
}

const struct mk__clock mk__clock_system = {.now_ms = now_ms,
                                           .now_us = now_us,
                                           .wall_seconds = wall_seconds,
                                           .ctx = NULL};

// SPDX-License-Identifier: Apache-2.0
/*
 * Condition variables whose waits end by the monotonic clock.
 */
#ifndef DUDA_CORE_COMMON_COND_H
#define DUDA_CORE_COMMON_COND_H

#include <pthread.h>
#include <stdint.h>
#include <time.h>

static inline void cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attr);
    pthread_condattr_destroy(&attr);
}

/* Returns the time in `ms` milliseconds, for pthread_cond_timedwait(). */
static inline struct timespec cond_time_in(uint32_t ms)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += ms / 1000;
    until.tv_nsec += ms % 1000 * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    return until;
}

#endif

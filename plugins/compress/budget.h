// SPDX-License-Identifier: Apache-2.0
/*
 * Limits of compressing for one worker: streams at the same time, memory, processor time. Each worker counts in
 * thread-local variables, so that all generations share the limits.
 */
#ifndef COMPRESS_BUDGET_H
#define COMPRESS_BUDGET_H

#include <monkey/arena.h>

struct budget_limits {
    int64_t cpu_percent; /* of the worker's time; 0 and 100: no limit */
    int64_t streams;
};

/*
 * Reserves a stream of at most `bytes`. All streams together get half of the account's limit. Returns false if there is
 * no room. Release it with the same `bytes`, in the same worker.
 */
bool budget_reserve(const struct budget_limits *limits, const struct mk_account *account, size_t bytes);
void budget_release(size_t bytes);

/* Returns true if time is left in this window of 100 ms. */
bool budget_has_time(const struct budget_limits *limits, uint64_t now_ms);
/* Returns the time until the next window. */
uint32_t budget_wait_ms(uint64_t now_ms);

/* Returns the processor time of the thread in nanoseconds; 0 without a limit. */
uint64_t budget_clock(const struct budget_limits *limits);
/* Counts the processor time since then. */
void budget_spend(const struct budget_limits *limits, uint64_t since);

#endif

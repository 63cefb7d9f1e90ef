// SPDX-License-Identifier: Apache-2.0
/*
 * What compressing may take of one worker: how many streams at once, how much memory, how much of its time.
 *
 * Each worker has its own books, in the thread's storage: a plugin has no hook yet at which a worker begins.
 */
#ifndef COMPRESS_BUDGET_H
#define COMPRESS_BUDGET_H

#include <monkey/arena.h>

struct budget_limits {
    int64_t cpu_percent; /* of the worker's time; 0 and 100: no limit */
    int64_t streams;
};

/*
 * May one more stream begin, which comes to `bytes` at the most? All streams together get half of the account's
 * budget. What was taken is given back with the same `bytes`, in the same worker.
 */
bool budget_reserve(const struct budget_limits *limits, const struct mk_account *account, size_t bytes);
void budget_release(size_t bytes);

/* Is there time left in this window of 100 ms? If not, how long is it until the next one? */
bool budget_has_time(const struct budget_limits *limits, uint64_t now_ms);
uint32_t budget_wait_ms(uint64_t now_ms);

/* The thread's own clock in nanoseconds, 0 where there is no limit; and what was done since it said `since`. */
uint64_t budget_clock(const struct budget_limits *limits);
void budget_spend(const struct budget_limits *limits, uint64_t since);

#endif

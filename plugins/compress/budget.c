// SPDX-License-Identifier: Apache-2.0
/*
 * Counts against the limits of budget.h. Time above the limit of a window is taken from the following ones: at a high
 * level one piece may take longer than a window.
 */
#include "budget.h"

#include <assert.h>
#include <time.h>

enum { WINDOW_MS = 100, PERCENT_NS = WINDOW_MS * 10000, WINDOWS_MAX = 1000 };

static _Thread_local struct {
    unsigned streams;
    size_t bytes;
    uint64_t window; /* the number of the window that was seen last */
    int64_t left_ns; /* of this window; below 0: taken from the next ones */
} worker_budget;

bool budget_reserve(const struct budget_limits *limits, const struct mk_account *account, size_t bytes)
{
    size_t max = account && account->bytes_max ? account->bytes_max / 2 : SIZE_MAX;
    if (worker_budget.streams >= limits->streams || bytes > max || worker_budget.bytes > max - bytes)
        return false;
    worker_budget.streams++;
    worker_budget.bytes += bytes;
    return true;
}

void budget_release(size_t bytes)
{
    assert(worker_budget.streams > 0 && bytes <= worker_budget.bytes);
    worker_budget.streams--;
    worker_budget.bytes -= bytes;
}

static bool is_limited(const struct budget_limits *limits)
{
    return limits->cpu_percent > 0 && limits->cpu_percent < 100;
}

bool budget_has_time(const struct budget_limits *limits, uint64_t now_ms)
{
    uint64_t window = now_ms / WINDOW_MS, passed = window - worker_budget.window;
    int64_t whole = limits->cpu_percent * PERCENT_NS;
    if (!is_limited(limits))
        return true;
    if (passed)
        worker_budget.left_ns += whole * (int64_t)(passed < WINDOWS_MAX ? passed : WINDOWS_MAX);
    if (worker_budget.left_ns > whole)
        worker_budget.left_ns = whole; /* unused time is not kept */
    worker_budget.window = window;
    return worker_budget.left_ns > 0;
}

uint32_t budget_wait_ms(uint64_t now_ms)
{
    return (uint32_t)(WINDOW_MS - now_ms % WINDOW_MS);
}

uint64_t budget_clock(const struct budget_limits *limits)
{
    struct timespec now;
    if (!is_limited(limits) || clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) < 0)
        return 0;
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void budget_spend(const struct budget_limits *limits, uint64_t since)
{
    assert(!is_limited(limits) || since <= budget_clock(limits));
    worker_budget.left_ns -= (int64_t)(budget_clock(limits) - since);
}

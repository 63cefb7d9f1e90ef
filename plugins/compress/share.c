// SPDX-License-Identifier: Apache-2.0
/*
 * The books of share.h. Time that was overdrawn is owed by the windows to come: one piece may take longer than a
 * window has, if the level is high.
 */
#include "share.h"

#include <time.h>

enum { WINDOW_MS = 100, PERCENT_NS = WINDOW_MS * 10000, WINDOWS_MAX = 1000 };

static _Thread_local struct {
    unsigned streams;
    size_t bytes;
    uint64_t window; /* the number of the last one that was seen */
    int64_t left_ns; /* of this window; below 0: owed */
} books;

bool share_take(const struct share_limits *limits, const struct mk_account *account, size_t bytes)
{
    size_t max = account && account->bytes_max ? account->bytes_max / 2 : SIZE_MAX;
    if (books.streams >= limits->streams || bytes > max || books.bytes > max - bytes)
        return false;
    books.streams++;
    books.bytes += bytes;
    return true;
}

void share_give_back(size_t bytes)
{
    books.streams--;
    books.bytes -= bytes;
}

static bool is_limited(const struct share_limits *limits)
{
    return limits->cpu_percent > 0 && limits->cpu_percent < 100;
}

bool share_has_time(const struct share_limits *limits, uint64_t now_ms)
{
    uint64_t window = now_ms / WINDOW_MS, passed = window - books.window;
    int64_t whole = limits->cpu_percent * PERCENT_NS;
    if (!is_limited(limits))
        return true;
    if (passed)
        books.left_ns += whole * (int64_t)(passed < WINDOWS_MAX ? passed : WINDOWS_MAX);
    if (books.left_ns > whole)
        books.left_ns = whole; /* what was not used is lost */
    books.window = window;
    return books.left_ns > 0;
}

uint32_t share_wait_ms(uint64_t now_ms)
{
    return (uint32_t)(WINDOW_MS - now_ms % WINDOW_MS);
}

uint64_t share_clock(const struct share_limits *limits)
{
    struct timespec now;
    if (!is_limited(limits) || clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) < 0)
        return 0;
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void share_spend(const struct share_limits *limits, uint64_t since)
{
    books.left_ns -= (int64_t)(share_clock(limits) - since);
}

// SPDX-License-Identifier: Apache-2.0
/* The system's clocks: near to what the precise ones say, and never going back. */
#include "testing.h"

#include <time.h>

#include "base/clock.h"

enum { TICK_MS = 20 }; /* the coarse clocks move with the kernel's tick: 1 to 10 ms */

static uint64_t precise_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

TEST(monotonic)
{
    const struct mk__clock *clock = &mk__clock_system;
    uint64_t before = precise_ms(), first = clock->now_ms(clock->ctx), last = first;
    assert_true(first + TICK_MS >= before);
    while (last < first + 2 * TICK_MS) {
        uint64_t now = clock->now_ms(clock->ctx);
        assert_true(now >= last);
        last = now;
    }
    assert_true(last <= precise_ms());
}

TEST(wall)
{
    const struct mk__clock *clock = &mk__clock_system;
    time_t before = time(NULL);
    int64_t now = clock->wall_seconds(clock->ctx);
    assert_true(now >= before - 1 && now <= time(NULL));
}

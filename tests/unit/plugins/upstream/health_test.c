// SPDX-License-Identifier: Apache-2.0
/* What results of checks say of a server, and when the next check is due. */
#include "testing.h"

#include "plugins/upstream/servers.h"

static const struct health_rules rules = {.down = 3, .up = 2, .interval_ms = 5000};

/* Results: + and -; the health behind each of them: U and D. */
static const struct {
    const char *results, *healths;
} rows[] = {
    {"+", "U"},
    {"-", "D"},
    {"+---", "UUUD"},
    {"+--+--+---", "UUUUUUUUUD"},
    {"-+", "DD"},
    {"-++", "DDU"},
    {"-+-+-++", "DDDDDDU"},
    {"+---++---", "UUUDDUUUD"},
    {"++++++++---+-+-++", "UUUUUUUUUUDDDDDDU"},
};

static uint8_t health_of(char letter)
{
    return letter == 'U' ? HEALTH_UP : HEALTH_DOWN;
}

TEST(results_in_a_row)
{
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct health_state s = {0};
        for (size_t k = 0; rows[i].results[k]; k++) {
            s = health_next(s, &rules, rows[i].results[k] == '+');
            if (s.health != health_of(rows[i].healths[k]))
                fail_msg("%s: result %zu", rows[i].results, k);
        }
    }
}

/* Another check decides at once, but until then the former one counts. */
TEST(the_first_result_of_another_check)
{
    struct health_state s = {.health = HEALTH_DOWN};
    assert_int_equal(health_next(s, &rules, true).health, HEALTH_UP);
    s = (struct health_state){.health = HEALTH_UP, .has_passed = true};
    assert_int_equal(health_next(s, &rules, false).health, HEALTH_DOWN);
}

TEST(a_limit_of_one)
{
    const struct health_rules one = {.down = 1, .up = 1, .interval_ms = 5000};
    struct health_state s = {0};
    for (int i = 0; i < 20; i++) {
        bool passes = i % 3 == 0;
        s = health_next(s, &one, passes);
        assert_int_equal(s.health, passes ? HEALTH_UP : HEALTH_DOWN);
    }
}

TEST(counts_do_not_overflow)
{
    struct health_state s = {.health = HEALTH_UP, .has_passed = true, .in_row = UINT32_MAX};
    s = health_next(s, &rules, true);
    assert_int_equal(s.health, HEALTH_UP);
    assert_true(s.in_row > 0);
}

/* Less 10 to 25 %. */
TEST(jitter)
{
    struct health_state s = health_next((struct health_state){0}, &rules, true);
    uint32_t least = UINT32_MAX, most = 0;
    for (uint32_t random = 0; random < 1000; random++) {
        uint32_t ms = health_get_wait_ms(&s, &rules, random * 7919);
        least = ms < least ? ms : least;
        most = ms > most ? ms : most;
    }
    assert_int_equal(least, 3750);
    assert_int_equal(most, 4500);
    assert_in_range(health_get_wait_ms(&s, &rules, UINT32_MAX), 3750, 4500);
}

TEST(faster_while_the_state_is_about_to_change)
{
    struct health_state s = {0};
    for (const char *at = "+--+---+-++-"; *at; at++) {
        s = health_next(s, &rules, *at == '+');
        bool contradicts = s.has_passed != (s.health == HEALTH_UP);
        assert_int_equal(health_get_wait_ms(&s, &rules, 0), contradicts ? 900 : 4500);
    }
}

TEST(the_least_wait)
{
    static const uint32_t intervals[] = {100, 110, 200, 499};
    for (size_t i = 0; i < COUNT(intervals); i++) {
        const struct health_rules fast = {.down = 3, .up = 2, .interval_ms = intervals[i]};
        struct health_state s = {.health = HEALTH_UP, .in_row = 1};
        assert_int_equal(health_get_wait_ms(&s, &fast, 150), 100);
    }
    const struct health_rules slow = {.down = 3, .up = 2, .interval_ms = 3600000};
    struct health_state s = {.health = HEALTH_UP, .has_passed = true, .in_row = 1};
    assert_int_equal(health_get_wait_ms(&s, &slow, 0), 3240000);
}

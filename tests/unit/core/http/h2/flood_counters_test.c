// SPDX-License-Identifier: Apache-2.0
/* What a client may do so often within ten seconds. */
#include "testing.h"

#include "http/h2/flood_counters.h"

static const struct mk__h2_settings settings = {
    .rates_max = {[MK__H2_FLOOD_RESET] = 3,
                  [MK__H2_FLOOD_STREAM_ERROR] = 2,
                  [MK__H2_FLOOD_PING] = 1,
                  [MK__H2_FLOOD_WINDOW_UPDATE] = 1 << 30},
};

static unsigned admitted(struct mk__h2_flood_counters *g, enum mk__h2_flood flood, unsigned times, uint64_t now_ms)
{
    unsigned n = 0;
    for (unsigned i = 0; i < times; i++)
        n += mk__h2_flood_counters_admit(g, &settings, flood, now_ms);
    return n;
}

TEST(each_has_its_limit)
{
    static const unsigned expected[MK__H2_FLOOD_RATES] = {[MK__H2_FLOOD_RESET] = 3,
                                                          [MK__H2_FLOOD_STREAM_ERROR] = 2,
                                                          [MK__H2_FLOOD_PING] = 1,
                                                          [MK__H2_FLOOD_WINDOW_UPDATE] = 10};
    struct mk__h2_flood_counters g = {0};
    for (unsigned flood = 0; flood < MK__H2_FLOOD_RATES; flood++)
        assert_int_equal(admitted(&g, flood, 10, 5000), expected[flood]);
    for (unsigned flood = 0; flood < MK__H2_FLOOD_RATES; flood++)
        assert_int_equal(admitted(&g, flood, 1, 5000), flood == MK__H2_FLOOD_WINDOW_UPDATE);
}

TEST(ten_seconds)
{
    static const struct {
        uint64_t first_ms, second_ms;
        unsigned admitted;
    } cases[] = {
        {0, 9999, 0}, {0, 10000, 3}, {12345, 12345 + 9999, 0}, {12345, 12345 + 10000, 3}, {1ull << 40, 1ull << 41, 3},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct mk__h2_flood_counters g = {0};
        assert_int_equal(admitted(&g, MK__H2_FLOOD_RESET, 4, cases[i].first_ms), 3);
        assert_int_equal(admitted(&g, MK__H2_FLOOD_RESET, 4, cases[i].second_ms), cases[i].admitted);
    }
}

/* They run from the first flood, not from each. */
TEST(a_steady_trickle_is_welcome)
{
    struct mk__h2_flood_counters g = {0};
    for (uint64_t now = 0; now < 1000000; now += 3400)
        assert_int_equal(admitted(&g, MK__H2_FLOOD_RESET, 1, now), 1);
}

// SPDX-License-Identifier: Apache-2.0
/* Byte ranges: syntax, clamping, limits; each case flush against a guard page. */
#include "testing.h"

#include "http/range.h"

enum { IGNORE = MK__RANGE_IGNORE, OK, UNSATISFIABLE, MAX = 4 };

static const struct {
    const char *value;
    uint64_t size;
    int result;
    unsigned n;
    struct mk__range ranges[MAX];
} cases[] = {
    {"bytes=0-0", 100, OK, 1, {{0, 0}}},
    {"bytes=0-99", 100, OK, 1, {{0, 99}}},
    {"bytes=50-120", 100, OK, 1, {{50, 99}}},
    {"bytes=0-500", 100, OK, 1, {{0, 99}}},
    {"bytes=99-", 100, OK, 1, {{99, 99}}},
    {"bytes=0-", 100, OK, 1, {{0, 99}}},
    {"BYTES=5-6", 100, OK, 1, {{5, 6}}},
    {"bytes=-1", 100, OK, 1, {{99, 99}}},
    {"bytes=-100", 100, OK, 1, {{0, 99}}},
    {"bytes=-500", 100, OK, 1, {{0, 99}}},
    {"bytes=0005-0006", 100, OK, 1, {{5, 6}}},
    {"bytes=0-18446744073709551615", 100, OK, 1, {{0, 99}}},
    {"bytes=0-99999999999999999999999999", 100, OK, 1, {{0, 99}}},
    {"bytes=-99999999999999999999999999", 100, OK, 1, {{0, 99}}},
    {"bytes=4294967296-4294967299", 5000000000, OK, 1, {{4294967296, 4294967299}}},
    {"bytes=9223372036854775807-", UINT64_MAX, OK, 1, {{INT64_MAX, UINT64_MAX - 1}}},
    {"bytes=0-1,5-6 ,\t-1,,", 100, OK, 3, {{0, 1}, {5, 6}, {99, 99}}},
    {"bytes= 0-1", 100, OK, 1, {{0, 1}}},
    {"bytes=200-300,1-1", 100, OK, 1, {{1, 1}}},
    {"bytes=9-9,0-0,0-0,5-", 100, OK, 4, {{9, 9}, {0, 0}, {0, 0}, {5, 99}}},
    {"bytes=100-", 100, UNSATISFIABLE, 0, {{0}}},
    {"bytes=100-200", 100, UNSATISFIABLE, 0, {{0}}},
    {"bytes=-0", 100, UNSATISFIABLE, 0, {{0}}},
    {"bytes=100-,-0", 100, UNSATISFIABLE, 0, {{0}}},
    {"bytes=18446744073709551616-", 100, UNSATISFIABLE, 0, {{0}}},
    {"bytes=18446744073709551615-99999999999999999999", 100, UNSATISFIABLE, 0, {{0}}},
    {"bytes=0-", 0, UNSATISFIABLE, 0, {{0}}},
    {"bytes=0-0", 0, UNSATISFIABLE, 0, {{0}}},
    {"bytes=-0", 0, UNSATISFIABLE, 0, {{0}}},
    {"bytes=-5", 0, IGNORE, 0, {{0}}},
    {"bytes=0-,-5", 0, IGNORE, 0, {{0}}},
    {"", 100, IGNORE, 0, {{0}}},
    {"bytes", 100, IGNORE, 0, {{0}}},
    {"bytes=", 100, IGNORE, 0, {{0}}},
    {"bytes=,", 100, IGNORE, 0, {{0}}},
    {"bytes=-", 100, IGNORE, 0, {{0}}},
    {"bytes=--1", 100, IGNORE, 0, {{0}}},
    {"bytes=5", 100, IGNORE, 0, {{0}}},
    {"bytes=5-4", 100, IGNORE, 0, {{0}}},
    {"bytes=200-100", 100, IGNORE, 0, {{0}}},
    {"bytes=0-1-2", 100, IGNORE, 0, {{0}}},
    {"bytes=0 -1", 100, IGNORE, 0, {{0}}},
    {"bytes=0- 1", 100, IGNORE, 0, {{0}}},
    {"bytes=- 1", 100, IGNORE, 0, {{0}}},
    {"bytes=+1-2", 100, IGNORE, 0, {{0}}},
    {"bytes=0x1-2", 100, IGNORE, 0, {{0}}},
    {"bytes=a-b", 100, IGNORE, 0, {{0}}},
    {"bytes=0-1;", 100, IGNORE, 0, {{0}}},
    {"bytes=0-1,x", 100, IGNORE, 0, {{0}}},
    {"bytes=\"0-1\"", 100, IGNORE, 0, {{0}}},
    {"bytes =0-1", 100, IGNORE, 0, {{0}}},
    {"bytes 0-1", 100, IGNORE, 0, {{0}}},
    {"lines=0-1", 100, IGNORE, 0, {{0}}},
    {"bytes=0-0,0-0,0-0,0-0,0-0", 100, IGNORE, 0, {{0}}},
    {"bytes=0-0,500-,500-,500-,500-", 100, IGNORE, 0, {{0}}},
};

static void test_parses(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        size_t len = strlen(cases[i].value);
        char *bytes = mk_test_guarded(cases[i].value, len);
        struct mk__range *ranges = (void *)mk_test_guarded(cases[i].ranges, sizeof(cases[i].ranges));
        unsigned n = 99;
        memset(ranges, 0xee, sizeof(cases[i].ranges));
        int result = mk__range_parse(mk_str(bytes, len), cases[i].size, ranges, MAX, &n);
        if (result != cases[i].result || n != cases[i].n)
            fail_msg("%s of %lu: %d, %u ranges", cases[i].value, (unsigned long)cases[i].size, result, n);
        for (unsigned r = 0; r < n; r++) {
            assert_int_equal(ranges[r].first, cases[i].ranges[r].first);
            assert_int_equal(ranges[r].last, cases[i].ranges[r].last);
        }
        mk_test_unguard((char *)ranges, sizeof(cases[i].ranges));
        mk_test_unguard(bytes, len);
    }
}

static void test_takes_no_more_than_asked(void **state)
{
    struct mk__range one = {7, 7};
    unsigned n;
    (void)state;
    assert_int_equal(mk__range_parse(MK_STR("bytes=0-1,2-3"), 100, &one, 1, &n), IGNORE);
    assert_int_equal(n, 0);
    assert_int_equal(mk__range_parse(MK_STR("bytes=2-3"), 100, &one, 1, &n), OK);
    assert_int_equal(one.first, 2);
    assert_int_equal(mk__range_parse(MK_STR("bytes=0-1"), 100, NULL, 0, &n), IGNORE);
    assert_int_equal(mk__range_parse(MK_STR_NONE, 100, &one, 1, &n), IGNORE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parses),
        cmocka_unit_test(test_takes_no_more_than_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

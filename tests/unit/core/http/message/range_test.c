// SPDX-License-Identifier: Apache-2.0
/* Byte ranges: syntax, clamping, limits, merging; each case flush against a guard page. */
#include "testing.h"

#include <monkey/base/buf.h>

#include "http/message/range.h"

#include <stdio.h>
#include <stdlib.h>

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

TEST(parses)
{
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

TEST(takes_no_more_than_asked)
{
    struct mk__range one = {7, 7};
    unsigned n;
    assert_int_equal(mk__range_parse(MK_STR("bytes=0-1,2-3"), 100, &one, 1, &n), IGNORE);
    assert_int_equal(n, 0);
    assert_int_equal(mk__range_parse(MK_STR("bytes=2-3"), 100, &one, 1, &n), OK);
    assert_int_equal(one.first, 2);
    assert_int_equal(mk__range_parse(MK_STR("bytes=0-1"), 100, NULL, 0, &n), IGNORE);
    assert_int_equal(mk__range_parse(MK_STR_NONE, 100, &one, 1, &n), IGNORE);
}

/* Ranges as "first-last,...", merged with a gap of ten bytes. */
static const struct {
    const char *before, *after;
} merges[] = {
    {"5-6", "5-6"},
    {"0-0,20-20", "0-0,20-20"},
    {"20-20,0-0", "20-20,0-0"},        /* in the client's order */
    {"0-4,5-9", "0-9"},                /* they touch */
    {"5-9,0-4", "0-9"},                /* from the other side */
    {"0-4,14-20", "0-20"},             /* nine bytes between them */
    {"0-4,15-20", "0-4,15-20"},        /* ten */
    {"15-20,0-4", "15-20,0-4"},        /* the same */
    {"0-99,10-20", "0-99"},            /* one inside the other */
    {"10-20,0-99", "0-99"},            /* one around the other */
    {"7-7,7-7,7-7", "7-7"},            /* one and the same */
    {"0-4,50-54,5-9", "0-9,50-54"},    /* at the place of the first */
    {"50-54,0-4,5-9", "50-54,0-9"},    /* at the place of the first */
    {"0-4,30-34,60-64,12-52", "0-64"}, /* one that joins them all */
    {"90-94,0-4,30-34,12-22", "90-94,0-34"},
    {"0-4,90-94,30-34,60-64,12-22,40-52", "0-64,90-94"},
    {"99-99,80-80,60-60,40-40,20-20,0-0", "99-99,80-80,60-60,40-40,20-20,0-0"},
    {"0-0,18446744073709551610-18446744073709551613", "0-0,18446744073709551610-18446744073709551613"},
    {"18446744073709551613-18446744073709551613,18446744073709551600-18446744073709551604",
     "18446744073709551600-18446744073709551613"},
    {"0-18446744073709551613,3-3", "0-18446744073709551613"},
};

TEST(merges)
{
    for (size_t i = 0; i < COUNT(merges); i++) {
        struct mk__range ranges[8];
        char field[256], text[256];
        struct mk_buf b;
        unsigned n;
        mk_buf_init_fixed(&b, text, sizeof(text));
        snprintf(field, sizeof(field), "bytes=%s", merges[i].before);
        assert_int_equal(mk__range_parse(mk_str_c(field), UINT64_MAX, ranges, 8, &n), OK);
        struct mk__range *exact = (void *)mk_test_guarded(ranges, n * sizeof(*ranges));
        unsigned left = mk__range_merge(exact, n, 10);
        for (unsigned r = 0; r < left; r++)
            mk_buf_addf(&b, "%s%llu-%llu", r ? "," : "", (unsigned long long)exact[r].first,
                        (unsigned long long)exact[r].last);
        assert_string_equal(mk_buf_cstr(&b), merges[i].after);
        mk_test_unguard((char *)exact, n * sizeof(*ranges));
    }
    assert_int_equal(mk__range_merge(NULL, 0, 10), 0);
}

/* Merging keeps every requested byte, and the remaining ranges are apart. */
TEST(merges_lose_nothing)
{
    unsigned seed = 7;
    for (int round = 0; round < 2000; round++) {
        struct mk__range ranges[MK__RANGES_MAX];
        bool wanted[1040] = {false}, kept[1040] = {false};
        unsigned n = 1 + (unsigned)rand_r(&seed) % MK__RANGES_MAX;
        for (unsigned i = 0; i < n; i++) {
            ranges[i].first = (unsigned)rand_r(&seed) % 1000;
            ranges[i].last = ranges[i].first + (unsigned)rand_r(&seed) % 24;
            memset(wanted + ranges[i].first, true, ranges[i].last - ranges[i].first + 1);
        }
        n = mk__range_merge(ranges, n, 5);
        for (unsigned i = 0; i < n; i++) {
            uint64_t from = ranges[i].first < 5 ? 0 : ranges[i].first - 5;
            assert_true(wanted[ranges[i].first] && wanted[ranges[i].last]);
            assert_null(memchr(kept + from, true, ranges[i].last + 6 - from));
            memset(kept + ranges[i].first, true, ranges[i].last - ranges[i].first + 1);
        }
        for (unsigned at = 0; at < 1040; at++)
            assert_true(kept[at] || !wanted[at]);
    }
}

// SPDX-License-Identifier: Apache-2.0
/* Conditions of access logs: how they are read, and which exchanges get a line. */
#include "plugins/logger/logger.h"

#include "conf_value.h"

#include <errno.h>

static bool passes(const struct filter *f, const char *path, int status, bool aborted, uint64_t time_us)
{
    uint32_t credit = 0;
    struct filter_exchange e = {mk_str_c(path), status, aborted, time_us};
    return filter_passes(f, &e, &credit);
}

TEST(no_conditions, mk_test_arena_open, mk_test_arena_close)
{
    struct filter f = {0};
    assert_true(passes(&f, "/", 200, false, 0));
    assert_true(passes(&f, "", 400, true, 0));
}

TEST(paths, mk_test_arena_open, mk_test_arena_close)
{
    struct filter f = {0};
    assert_int_equal(mk_test_parse_value(mk_conf_patterns, &f.except, "=/healthz *.css"), 0);
    assert_int_equal(mk_test_parse_value(mk_conf_patterns, &f.except, "~^/(a+)+$"), 0);
    assert_false(passes(&f, "/healthz", 200, false, 0));
    assert_true(passes(&f, "/healthz/x", 200, false, 0));
    assert_false(passes(&f, "/x/y.css", 200, false, 0));
    assert_false(passes(&f, "/aa", 200, false, 0));
    char costly[1000];
    memset(costly, 'a', sizeof(costly));
    costly[0] = '/';
    memcpy(costly + sizeof(costly) - 2, "!", 2);
    assert_true(passes(&f, costly, 200, false, 0));
}

TEST(statuses, mk_test_arena_open, mk_test_arena_close)
{
    struct filter f = {0};
    assert_int_equal(mk_test_parse_value(filter_parse_statuses, &f.statuses, "404 5xx"), 0);
    assert_true(passes(&f, "/", 404, false, 0));
    assert_true(passes(&f, "/", 500, false, 0));
    assert_true(passes(&f, "/", 599, false, 0));
    assert_false(passes(&f, "/", 403, false, 0));
    assert_false(passes(&f, "/", 200, true, 0));
    assert_int_equal(mk_test_parse_value(filter_parse_statuses, &f.statuses, "Aborted 1XX"), 0);
    assert_true(passes(&f, "/", 200, true, 0));
    assert_true(passes(&f, "/", 101, false, 0));
    assert_true(passes(&f, "/", 404, false, 0));
    struct filter only = {0};
    assert_int_equal(mk_test_parse_value(filter_parse_statuses, &only.statuses, "aborted"), 0);
    assert_false(passes(&only, "/", 500, false, 0));
    assert_true(passes(&only, "/", 200, true, 0));
}

TEST(slow_requests, mk_test_arena_open, mk_test_arena_close)
{
    struct filter f = {.slower_ms = 500};
    assert_false(passes(&f, "/", 200, false, 499999));
    assert_true(passes(&f, "/", 200, false, 500000));
    assert_false(passes(&f, "/", 200, false, 0));
}

static unsigned count_passes(const struct filter *f, unsigned n)
{
    uint32_t credit = 0;
    unsigned passed = 0;
    struct filter_exchange e = {.path = MK_STR("/"), .status = 200};
    for (unsigned i = 0; i < n; i++)
        passed += filter_passes(f, &e, &credit);
    return passed;
}

TEST(samples, mk_test_arena_open, mk_test_arena_close)
{
    static const struct {
        const char *text;
        unsigned n, passed;
    } cases[] = {
        {"1%", 1000, 10},        {"1/100", 1000, 10},      {"2.5%", 1000, 25}, {"0.01%", 10000, 1},
        {"100%", 100, 100},      {"1/1", 100, 100},        {"2/3", 300, 200},  {"999999/1000000", 1000, 999},
        {"33.33%", 10000, 3333}, {"1/1000000", 999999, 0}, {"0.5%", 400, 2},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct filter f = {0};
        assert_int_equal(mk_test_parse_value(filter_parse_sample, &f.sample, cases[i].text), 0);
        if (count_passes(&f, cases[i].n) != cases[i].passed)
            fail_msg("%s", cases[i].text);
    }
}

/* Exchanges that other conditions leave out do not count. */
TEST(a_sample_of_errors, mk_test_arena_open, mk_test_arena_close)
{
    struct filter f = {.sample = {1, 2}};
    uint32_t credit = 0;
    unsigned passed = 0;
    assert_int_equal(mk_test_parse_value(filter_parse_statuses, &f.statuses, "5xx"), 0);
    for (int i = 0; i < 40; i++) {
        struct filter_exchange e = {.path = MK_STR("/"), .status = i % 4 ? 200 : 500};
        passed += filter_passes(&f, &e, &credit);
    }
    assert_int_equal(passed, 5);
}

TEST(mistakes, mk_test_arena_open, mk_test_arena_close)
{
    static const struct {
        mk_conf_parse_fn fn;
        const char *text;
        size_t fault;
    } cases[] = {
        {filter_parse_statuses, "", 0},
        {filter_parse_statuses, "404 6xx", 4},
        {filter_parse_statuses, "0xx", 0},
        {filter_parse_statuses, "4x", 0},
        {filter_parse_statuses, "099", 0},
        {filter_parse_statuses, "600", 0},
        {filter_parse_statuses, "5xx errors", 4},
        {filter_parse_sample, "", 0},
        {filter_parse_sample, "1", 0},
        {filter_parse_sample, "%", 0},
        {filter_parse_sample, "0%", 0},
        {filter_parse_sample, "101%", 0},
        {filter_parse_sample, "1.%", 0},
        {filter_parse_sample, "1.234%", 0},
        {filter_parse_sample, "-1%", 0},
        {filter_parse_sample, "2/1", 0},
        {filter_parse_sample, "0/1", 0},
        {filter_parse_sample, "1/0", 0},
        {filter_parse_sample, "1/", 0},
        {filter_parse_sample, "1/1000001", 0},
        {filter_parse_sample, "1% 2%", 0},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        union {
            struct filter_statuses statuses;
            struct filter_sample sample;
        } field;
        memset(&field, 0, sizeof(field));
        assert_int_equal(mk_test_parse_value(cases[i].fn, &field, cases[i].text), -EINVAL);
        if (fault != cases[i].fault || !*reason)
            fail_msg("\"%s\": %s at %zu", cases[i].text, reason, fault);
    }
}

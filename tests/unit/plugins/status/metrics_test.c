// SPDX-License-Identifier: Apache-2.0
/*
 * Counters as metrics, in both formats. What other programs say about whole outputs is in tests/e2e/test_status.py.
 */
#include "plugins/status/report.h"
#include "testing.h"

#include <errno.h>

static void check_utf8(const char *bytes, size_t len, const char *text)
{
    struct mk_buf out;
    char *copy = mk_test_guarded(bytes, len);
    mk_buf_init(&out, 4096);
    text_write(&out, mk_str(copy, len));
    assert_str_equal(mk_buf_str(&out), text);
    mk_buf_release(&out);
    mk_test_unguard(copy, len);
}

#define BAD "\xef\xbf\xbd"
#define CHECK_UTF8(bytes, text) check_utf8(bytes, sizeof(bytes) - 1, text)

TEST(utf8)
{
    CHECK_UTF8("plain", "plain");
    CHECK_UTF8("\xc3\xa9\xe2\x82\xac\xf0\x9f\x90\x92", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x90\x92");
    CHECK_UTF8("\xc3", BAD);
    CHECK_UTF8("a\xe2\x82", "a" BAD BAD);
    CHECK_UTF8("\xc0\xaf", BAD BAD);                 /* longer than needed */
    CHECK_UTF8("\xe0\x9f\xbf", BAD BAD BAD);         /* the same */
    CHECK_UTF8("\xed\xa0\x80", BAD BAD BAD);         /* a surrogate */
    CHECK_UTF8("\xf4\x90\x80\x80", BAD BAD BAD BAD); /* beyond U+10FFFF */
    CHECK_UTF8("\xf0\x9f\x90x", BAD BAD BAD "x");
    CHECK_UTF8("\xff\x80z", BAD BAD "z");
}

static uint64_t buckets[MK_COUNTER_BUCKETS];

static const struct mk_counter_value requests[] = {
    {.name = MK_STR("requests"),
     .help = MK_STR("requests, \\ \"by\" host"),
     .labels = MK_STR("host=\"a\\\"b\",status=\"2xx\""),
     .value = 7},
    {.name = MK_STR("requests"), .labels = MK_STR("host=\"b\xff\",status=\"2xx\""), .value = INT64_MAX},
};
static const struct mk_counter_value hits = {.plugin = MK_STR("my-cache"),
                                             .name = MK_STR("hits"),
                                             .help = MK_STR("hits"),
                                             .kind = MK_COUNTER_LEVEL,
                                             .value = -3};

static struct mk_buf write_all(enum metrics_format format)
{
    struct mk_buf out;
    struct metrics m;
    mk_buf_init(&out, 65536);
    metrics_begin(&m, format, &out);
    for (unsigned i = 0; i < COUNT(requests); i++)
        assert_int_equal(metrics_counter(&requests[i], &m), 0);
    assert_int_equal(metrics_counter(&hits, &m), 0);
    metrics_family(&m, "process_cpu_seconds", MK_COUNTER_SUM, "CPU");
    metrics_sample(&m, MK_COUNTER_SUM, NULL, 1.25);
    metrics_family(&m, "up", MK_COUNTER_LEVEL, "up");
    metrics_sample(&m, MK_COUNTER_LEVEL, "worker=\"0\"", 1);
    metrics_end(&m);
    return out;
}

/*
 * Asserts the whole output in a format, in which the families of sums are named with `suffix` and the help of
 * requests is `help`.
 */
static void check_all(enum metrics_format format, const char *suffix, const char *help, const char *end)
{
    struct mk_buf out = write_all(format), expected;
    mk_buf_init(&expected, 65536);
    mk_buf_addf(&expected,
                "# HELP monkey_requests%1$s %2$s\n"
                "# TYPE monkey_requests%1$s counter\n"
                "monkey_requests_total{host=\"a\\\"b\",status=\"2xx\"} 7\n"
                "monkey_requests_total{host=\"b\xef\xbf\xbd\",status=\"2xx\"} 9223372036854775807\n"
                "# HELP monkey_my_cache_hits hits\n"
                "# TYPE monkey_my_cache_hits gauge\n"
                "monkey_my_cache_hits -3\n"
                "# HELP process_cpu_seconds%1$s CPU\n"
                "# TYPE process_cpu_seconds%1$s counter\n"
                "process_cpu_seconds_total 1.25\n"
                "# HELP up up\n"
                "# TYPE up gauge\n"
                "up{worker=\"0\"} 1\n"
                "%3$s",
                suffix, help, end);
    mk_buf_addc(&expected, '\0');
    assert_str_equal(mk_buf_str(&out), expected.data);
    mk_buf_release(&out);
    mk_buf_release(&expected);
}

TEST(text)
{
    check_all(METRICS_TEXT, "_total", "requests, \\\\ \"by\" host", "");
}

TEST(openmetrics)
{
    check_all(METRICS_OPENMETRICS, "", "requests, \\\\ \\\"by\\\" host", "# EOF\n");
}

static bool has(struct mk_str text, const char *part)
{
    return memmem(text.p, text.len, part, strlen(part)) != NULL;
}

TEST(histogram)
{
    struct mk_counter_value v = {.name = MK_STR("duration"),
                                 .help = MK_STR("time"),
                                 .labels = MK_STR("host=\"a\""),
                                 .kind = MK_COUNTER_HISTOGRAM,
                                 .value = 99, /* read at another moment than the buckets */
                                 .sum_us = 3000007,
                                 .buckets = buckets};
    struct mk_buf out;
    struct metrics m;
    memset(buckets, 0, sizeof(buckets));
    buckets[mk_counter_bucket(3)] = 1;
    buckets[mk_counter_bucket(4)] = 2;
    buckets[mk_counter_bucket(1023)] += 4;
    buckets[mk_counter_bucket(1024)] += 8;
    buckets[mk_counter_bucket(UINT64_MAX)] = 16;
    mk_buf_init(&out, 65536);
    metrics_begin(&m, METRICS_TEXT, &out);
    metrics_counter(&v, &m);
    struct mk_str text = mk_buf_str(&out);
    assert_true(mk_str_starts(text, MK_STR("# HELP monkey_duration_seconds time\n"
                                           "# TYPE monkey_duration_seconds histogram\n"
                                           "monkey_duration_seconds_bucket{host=\"a\",le=\"4e-06\"} 1\n"
                                           "monkey_duration_seconds_bucket{host=\"a\",le=\"8e-06\"} 3\n"
                                           "monkey_duration_seconds_bucket{host=\"a\",le=\"1.6e-05\"} 3\n")));
    assert_true(has(text, "{host=\"a\",le=\"0.000512\"} 3\n"));
    assert_true(has(text, "{host=\"a\",le=\"0.001024\"} 7\n"));
    assert_true(has(text, "{host=\"a\",le=\"0.002048\"} 15\n"));
    assert_true(has(text, "{host=\"a\",le=\"67.108864\"} 15\n"
                          "monkey_duration_seconds_bucket{host=\"a\",le=\"+Inf\"} 31\n"
                          "monkey_duration_seconds_sum{host=\"a\"} 3.000007\n"
                          "monkey_duration_seconds_count{host=\"a\"} 31\n"));
    mk_buf_release(&out);
}

TEST(limits)
{
    char name[METRICS_NAME_BYTES] = {0};
    struct mk_counter_value v = {.name = mk_str(name, sizeof(name)), .value = 1};
    struct metrics m;
    struct mk_buf out;
    memset(name, 'n', sizeof(name));
    mk_buf_init(&out, 100);
    metrics_begin(&m, METRICS_TEXT, &out);
    assert_int_equal(metrics_counter(&v, &m), 0); /* its name does not fit: it is left out */
    assert_int_equal(out.len, 0);
    v.name.len = sizeof(name) - 8;
    assert_int_equal(metrics_counter(&v, &m), -ENOBUFS);
    mk_buf_release(&out);
}

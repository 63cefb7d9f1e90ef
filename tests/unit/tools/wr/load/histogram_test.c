// SPDX-License-Identifier: Apache-2.0
/*
 * The counters of latencies: precision, percentiles, and the bytes of the encoding.
 */
#include "testing.h"

#include "tools/wr/load/histogram.h"

#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

static struct histogram h, other;

TEST(index)
{
    assert_int_equal(histogram_index(0), 0);
    assert_int_equal(histogram_index(2047), 2047);
    assert_int_equal(histogram_index(2048), 2048);
    assert_int_equal(histogram_index(2049), 2048);
    assert_int_equal(histogram_index(4095), 3071);
    assert_int_equal(histogram_index(4096), 3072);
    assert_int_equal(histogram_index(HISTOGRAM_VALUE_MAX), HISTOGRAM_COUNTERS - 1);
    assert_true(HISTOGRAM_VALUE_MAX >= 3600ull * 1000 * 1000);
}

/* A percentile is at most 0.1 % above the value. */
TEST(precision)
{
    for (uint64_t v = 1; v < HISTOGRAM_VALUE_MAX; v += v / 7 + 1) {
        histogram_init(&h);
        histogram_record(&h, v);
        uint64_t p = histogram_percentile(&h, 50);
        assert_true(p >= v && p - v <= v / 1000);
        assert_int_equal(h.min, v);
        assert_int_equal(h.max, v);
    }
}

TEST(percentiles)
{
    histogram_init(&h);
    assert_int_equal(histogram_percentile(&h, 99), 0);
    for (uint64_t v = 1; v <= 1000; v++)
        histogram_record(&h, v);
    assert_int_equal(histogram_percentile(&h, 0), 1);
    assert_int_equal(histogram_percentile(&h, 50), 500);
    assert_int_equal(histogram_percentile(&h, 99), 990);
    assert_int_equal(histogram_percentile(&h, 99.9), 999);
    assert_int_equal(histogram_percentile(&h, 100), 1000);
    assert_true(histogram_mean(&h) > 500.4 && histogram_mean(&h) < 500.6);
    histogram_record(&h, UINT64_MAX); /* more than an hour */
    assert_int_equal(h.max, HISTOGRAM_VALUE_MAX);
}

TEST(add)
{
    histogram_init(&h);
    histogram_init(&other);
    histogram_record(&h, 5);
    histogram_record(&other, 3);
    histogram_record(&other, 100000);
    histogram_add(&h, &other);
    assert_int_equal(h.n, 3);
    assert_int_equal(h.min, 3);
    assert_int_equal(h.max, 100000);
    assert_int_equal(h.sum, 100008);
    assert_int_equal(histogram_percentile(&h, 50), 5);
}

/* Decodes base64 and zlib. Returns the number of bytes. */
static size_t unpack(struct mk_str text, unsigned char *to, size_t size, unsigned char *head)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    unsigned char packed[4096];
    size_t n = 0;
    uLongf len = size;
    assert_int_equal(text.len % 4, 0);
    for (size_t i = 0; i < text.len; i += 4) {
        uint32_t v = 0;
        for (size_t k = 0; k < 4; k++) {
            const char *digit = strchr(digits, text.p[i + k]);
            v = v << 6 | (text.p[i + k] == '=' ? 0 : (uint32_t)(digit - digits));
        }
        packed[n++] = (unsigned char)(v >> 16);
        packed[n++] = (unsigned char)(v >> 8);
        packed[n++] = (unsigned char)v;
    }
    memcpy(head, packed, 8);
    assert_int_equal(uncompress(to, &len, packed + 8, n - 8), Z_OK);
    return len;
}

TEST(encoding)
{
    static const unsigned char expected[] = {
        0x1c, 0x84, 0x93, 0x13, 0, 0, 0, 9,             /* cookie, bytes of the counters */
        0,    0,    0,    0,    0, 0, 0, 3,             /* offset, digits */
        0,    0,    0,    0,    0, 0, 0, 1, 0, 0, 0, 0, /* lowest value */
        0xff, 0xff, 0xff, 0xff,                         /* highest */
        0x3f, 0xf0, 0,    0,    0, 0, 0, 0,             /* 1.0 */
        0,                                              /* a single zero */
        2,                                              /* value 1: once */
        0x03,                                           /* two zeros */
        0x84, 0x02,                                     /* value 4: 130 times */
        0xef, 0x0f,                                     /* 1016 zeros: 5 to 1020 */
        4,                                              /* value 1021: twice */
        2,                                              /* value 1022: once */
    };
    unsigned char plain[256], head[8];
    struct mk_buf out;
    histogram_init(&h);
    histogram_record(&h, 1);
    for (int i = 0; i < 130; i++)
        histogram_record(&h, 4);
    histogram_record(&h, 1021);
    histogram_record(&h, 1021);
    histogram_record(&h, 1022);
    mk_buf_init(&out, 1 << 20);
    assert_int_equal(histogram_encode(&h, &out), 0);
    size_t n = unpack(mk_buf_str(&out), plain, sizeof(plain), head);
    assert_int_equal(n, sizeof(expected));
    assert_memory_equal(plain, expected, n);
    assert_memory_equal(head, "\x1c\x84\x93\x14\0\0\0", 7);
    mk_buf_release(&out);
}

TEST(failing_allocs)
{
    for (long n = 0; n < 2; n++) {
        struct mk_buf out;
        mk_buf_init(&out, 1 << 20);
        mk__alloc_countdown = n;
        assert_true(histogram_encode(&h, &out) < 0);
        mk__alloc_countdown = -1;
        mk_buf_release(&out);
    }
}

TEST(log)
{
    char path[] = "/tmp/histogram-XXXXXX", text[1024] = "";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(histogram_write_log(path, 1000000000.5, 2.25, 1500, "HISTFAAA"), 0);
    assert_true(read(fd, text, sizeof(text) - 1) > 0);
    assert_non_null(strstr(text, "#[Histogram log format version 1.3]\n"));
    assert_non_null(strstr(text, "#[StartTime: 1000000000.500 (seconds since epoch), Sun Sep 09 01:46:40 UTC 2001]\n"));
    assert_non_null(strstr(text, "\n0.000,2.250,1.500,HISTFAAA\n"));
    close(fd);
    unlink(path);
    assert_true(histogram_write_log("/nonexistent/x", 0, 0, 0, "") < 0);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Percentiles of the counters, and their encodings of HdrHistogram (https://github.com/HdrHistogram): V2, compressed,
 * and the log file.
 */
#include "histogram.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <zlib.h>

#include <monkey/base/arena.h>
#include <monkey/base/base64.h>

enum {
    V2_COOKIE = 0x1c849303 | 0x10,
    V2_COMPRESSED_COOKIE = 0x1c849304 | 0x10,
    V2_HEAD_BYTES = 40,
    V2_COUNTER_BYTES_MAX = 9,
};

void histogram_init(struct histogram *h)
{
    memset(h, 0, sizeof(*h));
    h->min = UINT64_MAX;
}

void histogram_add(struct histogram *h, const struct histogram *from)
{
    h->n += from->n;
    h->sum += from->sum;
    h->min = from->min < h->min ? from->min : h->min;
    h->max = from->max > h->max ? from->max : h->max;
    for (unsigned i = 0; i < HISTOGRAM_COUNTERS; i++)
        h->counters[i] += from->counters[i];
}

/* Returns the highest value of a counter. */
static uint64_t highest_value(unsigned index)
{
    unsigned shift = index < 2 * HISTOGRAM_HALF ? 0 : (index >> HISTOGRAM_HALF_BITS) - 1;
    uint64_t sub = index - ((uint64_t)shift << HISTOGRAM_HALF_BITS);
    return ((sub + 1) << shift) - 1;
}

uint64_t histogram_percentile(const struct histogram *h, double percent)
{
    uint64_t wanted = (uint64_t)(percent / 100 * (double)h->n + 0.5), seen = 0;
    if (!h->n)
        return 0;
    if (!wanted)
        wanted = 1;
    for (unsigned i = 0; i < HISTOGRAM_COUNTERS; i++) {
        seen += h->counters[i];
        if (seen >= wanted)
            return highest_value(i);
    }
    return h->max;
}

double histogram_mean(const struct histogram *h)
{
    return h->n ? (double)h->sum / (double)h->n : 0;
}

/* ── encodings ── */

static unsigned char *put_int(unsigned char *to, uint64_t value, unsigned bytes)
{
    for (unsigned i = bytes; i-- > 0; value >>= 8)
        to[i] = (unsigned char)value;
    return to + bytes;
}

/* ZigZag, then LEB128 of at most nine bytes, the last of which has eight bits of the value. */
static unsigned char *put_zigzag(unsigned char *to, int64_t value)
{
    uint64_t v = ((uint64_t)value << 1) ^ (uint64_t)(value >> 63);
    unsigned char *last = to + V2_COUNTER_BYTES_MAX - 1;
    for (; v > 0x7f && to < last; v >>= 7)
        *to++ = (unsigned char)(v | 0x80);
    *to++ = (unsigned char)v;
    return to;
}

/* Puts the counters up to that of the maximum; zeros in a row become their number, negative. */
static unsigned char *put_counters(const struct histogram *h, unsigned char *to)
{
    unsigned end = h->n ? histogram_index(h->max) + 1 : 0;
    for (unsigned i = 0; i < end;) {
        unsigned first = i;
        while (i < end && !h->counters[i])
            i++;
        if (i > first)
            to = put_zigzag(to, i - first > 1 ? -(int64_t)(i - first) : 0);
        else
            to = put_zigzag(to, (int64_t)h->counters[i++]);
    }
    return to;
}

/* Returns the number of bytes at `to`. */
static size_t put_histogram(const struct histogram *h, unsigned char *to)
{
    unsigned char *end = put_counters(h, to + V2_HEAD_BYTES), *p = to;
    double ratio = 1;
    uint64_t ratio_bits;
    memcpy(&ratio_bits, &ratio, sizeof(ratio));
    p = put_int(p, V2_COOKIE, 4);
    p = put_int(p, (uint64_t)(end - to - V2_HEAD_BYTES), 4);
    p = put_int(p, 0, 4); /* normalizing index offset */
    p = put_int(p, 3, 4); /* significant digits */
    p = put_int(p, 1, 8); /* lowest discernible value */
    p = put_int(p, HISTOGRAM_VALUE_MAX, 8);
    put_int(p, ratio_bits, 8);
    return (size_t)(end - to);
}

int histogram_encode(const struct histogram *h, struct mk_buf *out)
{
    size_t plain_max = V2_HEAD_BYTES + (size_t)HISTOGRAM_COUNTERS * V2_COUNTER_BYTES_MAX;
    uLongf packed_len = compressBound(plain_max);
    unsigned char *plain = mk_account_alloc(NULL, plain_max), *packed = mk_account_alloc(NULL, 8 + packed_len);
    int err = -ENOMEM;
    size_t size = 8 + packed_len;
    if (plain && packed && compress(packed + 8, &packed_len, plain, (uLong)put_histogram(h, plain)) == Z_OK) {
        put_int(put_int(packed, V2_COMPRESSED_COOKIE, 4), packed_len, 4);
        mk_base64_encode(out, packed, 8 + packed_len, MK_BASE64);
        err = out->err;
    }
    if (plain)
        mk_account_free(NULL, plain, plain_max);
    if (packed)
        mk_account_free(NULL, packed, size);
    return err;
}

int histogram_write_log(const char *path, double started, double seconds, uint64_t max_us, const char *encoded)
{
    FILE *file = fopen(path, "we");
    time_t at = (time_t)started;
    char date[64] = "";
    struct tm tm;
    if (!file)
        return -errno;
    if (gmtime_r(&at, &tm))
        strftime(date, sizeof(date), "%a %b %d %H:%M:%S UTC %Y", &tm);
    fprintf(file,
            "#[Latencies in microseconds; Interval_Max in milliseconds]\n#[Histogram log format version 1.3]\n"
            "#[StartTime: %.3f (seconds since epoch), %s]\n"
            "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n"
            "0.000,%.3f,%.3f,%s\n",
            started, date, seconds, (double)max_us / 1000, encoded);
    bool failed = ferror(file);
    return fclose(file) != 0 || failed ? -EIO : 0;
}

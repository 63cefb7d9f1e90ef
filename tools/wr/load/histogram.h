// SPDX-License-Identifier: Apache-2.0
/*
 * Latencies in log-linear counters, as HdrHistogram has them: three significant digits, from 1 us to more than an hour.
 *
 *     values         0 .. 2047   2048 .. 4095   4096 .. 8191   ...     2^31 .. 2^32 - 1
 *     a counter for  1           2              4              ...     2^21 values
 */
#ifndef WR_LOAD_HISTOGRAM_H
#define WR_LOAD_HISTOGRAM_H

#include <stdint.h>
#include <stdio.h>

#include <monkey/base/buf.h>

enum {
    HISTOGRAM_HALF_BITS = 10,
    HISTOGRAM_HALF = 1 << HISTOGRAM_HALF_BITS,
    HISTOGRAM_BUCKETS = 22, /* the first covers twice as many counters as the others */
    HISTOGRAM_COUNTERS = (HISTOGRAM_BUCKETS + 1) * HISTOGRAM_HALF,
};

#define HISTOGRAM_VALUE_MAX ((1ull << (HISTOGRAM_HALF_BITS + HISTOGRAM_BUCKETS)) - 1) /* 71 minutes, in us */

struct histogram {
    uint64_t n, sum, min, max;
    uint64_t counters[HISTOGRAM_COUNTERS];
};

void histogram_init(struct histogram *h);
/* Adds the values of `from`. */
void histogram_add(struct histogram *h, const struct histogram *from);
/* Returns the value at or below which `percent` of the values are: the highest that shares its counter; 0 if empty. */
uint64_t histogram_percentile(const struct histogram *h, double percent);
double histogram_mean(const struct histogram *h);
/* Appends the histogram in HdrHistogram's compressed V2 encoding, in base64. Returns 0 or -ENOMEM. */
int histogram_encode(const struct histogram *h, struct mk_buf *out);
/* Writes a log in HdrHistogram's format with one interval. Returns 0 or -errno. */
int histogram_write_log(const char *path, double started, double seconds, uint64_t max_us, const char *encoded);

/* Returns the counter of a value, which is at most HISTOGRAM_VALUE_MAX. */
static inline unsigned histogram_index(uint64_t value)
{
    unsigned shift = 63 - HISTOGRAM_HALF_BITS - (unsigned)__builtin_clzll(value | (2 * HISTOGRAM_HALF - 1));
    return (shift << HISTOGRAM_HALF_BITS) + (unsigned)(value >> shift);
}

static inline void histogram_record(struct histogram *h, uint64_t value)
{
    if (value > HISTOGRAM_VALUE_MAX)
        value = HISTOGRAM_VALUE_MAX;
    h->n++;
    h->sum += value;
    h->min = value < h->min ? value : h->min;
    h->max = value > h->max ? value : h->max;
    h->counters[histogram_index(value)]++;
}

#endif

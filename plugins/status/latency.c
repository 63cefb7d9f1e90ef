// SPDX-License-Identifier: Apache-2.0
/*
 * Writes durations (latency.h).
 */
#include "latency.h"

#include <monkey/json.h>

static void add_percentiles(struct mk_buf *out, uint64_t sum_us, const uint64_t *buckets)
{
    static const struct {
        const char *key;
        double share;
    } rows[] = {{"p50_ms", 0.5}, {"p90_ms", 0.9}, {"p99_ms", 0.99}, {"p999_ms", 0.999}};
    uint64_t n = 0;
    for (unsigned i = 0; i < MK_COUNTER_BUCKETS; i++)
        n += buckets[i];
    mk_json_number(out, "count", (int64_t)n);
    mk_json_real(out, "mean_ms", n ? (double)sum_us / (double)n / 1e3 : 0);
    for (unsigned i = 0; i < MK_COUNT_OF(rows); i++)
        mk_json_real(out, rows[i].key, (double)mk_counter_quantile_us(buckets, rows[i].share) / 1e3);
}

/* Each bucket that is not empty: its end in milliseconds (null: none) and its number. */
static void add_buckets(struct mk_buf *out, const uint64_t *buckets)
{
    mk_json_open(out, "buckets", '[');
    for (unsigned i = 0; i < MK_COUNTER_BUCKETS; i++) {
        if (!buckets[i])
            continue;
        mk_json_open(out, NULL, '[');
        if (i == MK_COUNTER_BUCKETS - 1)
            mk_json_null(out, NULL);
        else
            mk_json_real(out, NULL, (double)mk_counter_bucket_end_us(i) / 1e3);
        mk_json_number(out, NULL, (int64_t)buckets[i]);
        mk_json_close(out, ']');
    }
    mk_json_close(out, ']');
}

void latency_write(struct mk_buf *out, const char *key, uint64_t sum_us, const uint64_t *buckets)
{
    mk_json_open(out, key, '{');
    add_percentiles(out, sum_us, buckets);
    add_buckets(out, buckets);
    mk_json_close(out, '}');
}

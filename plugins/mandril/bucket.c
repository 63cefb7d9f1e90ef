// SPDX-License-Identifier: Apache-2.0
/*
 * Token buckets (bucket.h). A bucket keeps what is missing, not what is there: after a reload with another rate or
 * burst the client has used as much as before.
 */
#include "bucket.h"

#include <assert.h>

enum { DAY_S = 86400, BYTES_BURST_MIN = 2048, BURSTS_PER_S = 10 };

struct bucket_rate bucket_request_rate(uint32_t n, uint32_t period_s, uint32_t burst)
{
    assert(n > 0 && n <= BUCKET_REQUESTS_MAX && burst > 0 && burst <= BUCKET_REQUESTS_MAX && DAY_S % period_s == 0);
    return (struct bucket_rate){BUCKET_REQUEST, (uint64_t)n * (DAY_S / period_s), burst * BUCKET_REQUEST};
}

struct bucket_rate bucket_byte_rate(uint64_t bytes_per_s)
{
    assert(bytes_per_s > 0 && bytes_per_s <= BUCKET_BYTES_MAX);
    uint64_t burst = bytes_per_s / BURSTS_PER_S;
    return (struct bucket_rate){BUCKET_BYTE, bytes_per_s,
                                (burst < BYTES_BURST_MIN ? BYTES_BURST_MIN : burst) * BUCKET_BYTE};
}

/* Fills the bucket up to `now_us`, which may be earlier than the last time if threads read the clock before a lock. */
static void fill_bucket(struct bucket *b, const struct bucket_rate *rate, uint64_t now_us)
{
    if (now_us <= b->at_us)
        return;
    uint64_t elapsed = now_us - b->at_us;
    b->used = elapsed > b->used / rate->per_us ? 0 : b->used - elapsed * rate->per_us;
    b->at_us = now_us;
}

uint64_t bucket_count(struct bucket *b, const struct bucket_rate *rate, uint64_t now_us)
{
    fill_bucket(b, rate, now_us);
    return b->used >= rate->capacity ? 0 : (rate->capacity - b->used) / rate->token;
}

bool bucket_take(struct bucket *b, const struct bucket_rate *rate, uint64_t tokens, uint64_t now_us)
{
    if (bucket_count(b, rate, now_us) < tokens)
        return false;
    b->used += tokens * rate->token;
    return true;
}

void bucket_put(struct bucket *b, const struct bucket_rate *rate, uint64_t tokens)
{
    uint64_t units = tokens * rate->token;
    b->used = units > b->used ? 0 : b->used - units;
}

uint64_t bucket_wait_us(const struct bucket *b, const struct bucket_rate *rate, uint64_t tokens)
{
    uint64_t units = tokens * rate->token;
    assert(units <= rate->capacity);
    uint64_t allowed = rate->capacity - units; /* may be missing */
    return b->used <= allowed ? 0 : (b->used - allowed + rate->per_us - 1) / rate->per_us;
}

uint64_t bucket_full_at(const struct bucket *b, const struct bucket_rate *rate)
{
    return b->at_us + (rate->per_us ? (b->used + rate->per_us - 1) / rate->per_us : 0);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Token buckets in whole numbers, so that no rounding adds tokens or loses them. A bucket that is zeroed is full. Time
 * is in microseconds of a monotonic clock. The caller locks.
 */
#ifndef MANDRIL_BUCKET_H
#define MANDRIL_BUCKET_H

#include <stdbool.h>
#include <stdint.h>

/*
 * A token is made of so many units: those of a request are filled per second, minute, hour or day, whose numbers of
 * microseconds divide it.
 */
#define BUCKET_REQUEST 86400000000ULL
#define BUCKET_BYTE 1000000ULL

enum { BUCKET_REQUESTS_MAX = 1000000 };
#define BUCKET_BYTES_MAX (1ULL << 40)

struct bucket {
    uint64_t used;  /* units that are missing */
    uint64_t at_us; /* at this time */
};

struct bucket_rate {
    uint64_t token;    /* units of a token */
    uint64_t per_us;   /* units that are filled in a microsecond; 0: no limit */
    uint64_t capacity; /* units of a full bucket */
};

/* Returns a rate of `n` requests in `period_s` seconds (1, 60, 3600 or 86400), of which `burst` may come at once. */
struct bucket_rate bucket_request_rate(uint32_t n, uint32_t period_s, uint32_t burst);
/* Returns a rate of bytes per second. About 100 ms of them, 2 KB at least, may be sent at once. */
struct bucket_rate bucket_byte_rate(uint64_t bytes_per_s);

/* Returns the number of tokens that are in the bucket now. */
uint64_t bucket_count(struct bucket *b, const struct bucket_rate *rate, uint64_t now_us);
/* Takes tokens. Returns false, and takes none, if there are fewer. */
bool bucket_take(struct bucket *b, const struct bucket_rate *rate, uint64_t tokens, uint64_t now_us);
/* Puts tokens back that were taken. */
void bucket_put(struct bucket *b, const struct bucket_rate *rate, uint64_t tokens);
/* Returns the microseconds until the bucket, as bucket_count() has left it, has so many tokens. */
uint64_t bucket_wait_us(const struct bucket *b, const struct bucket_rate *rate, uint64_t tokens);
/* Returns the time from which on the bucket is full. */
uint64_t bucket_full_at(const struct bucket *b, const struct bucket_rate *rate);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * Durations of a histogram as a member of the document.
 */
#ifndef STATUS_LATENCY_H
#define STATUS_LATENCY_H

#include <monkey/buf.h>
#include <monkey/counters.h>

/* Writes number, mean, percentiles and buckets of MK_COUNTER_BUCKETS numbers, whose sum is `sum_us`. */
void latency_write(struct mk_buf *out, const char *key, uint64_t sum_us, const uint64_t *buckets);

#endif

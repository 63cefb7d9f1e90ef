// SPDX-License-Identifier: Apache-2.0
/*
 * Rates of the last seconds, from samples that snapshots of the server leave behind. Nothing takes samples without
 * such snapshots: a rate is unknown then. Not for several threads at the same time.
 */
#ifndef STATUS_HISTORY_H
#define STATUS_HISTORY_H

#include "totals.h"

enum { HISTORY_SAMPLES = 128, HISTORY_INTERVAL_MS = 900 /* two samples are not closer */ };

struct history_sample {
    uint64_t ms; /* of a monotonic clock */
    uint64_t requests, errors, received_body_bytes, sent_body_bytes, accepted_connections;
};

/* Initialized with zeros. */
struct history {
    struct history_sample samples[HISTORY_SAMPLES]; /* a ring */
    unsigned n, next;
};

/* Makes a sample of totals. Errors are responses 5xx. */
struct history_sample history_sample(const struct totals *t, uint64_t now_ms);
/* Keeps the sample, unless the newest one is very young. */
void history_add(struct history *h, const struct history_sample *sample);
/*
 * Finds the sample from which a rate over `window_ms` up to `now` is computed: the youngest that is at least nine
 * tenths as old, and at most twice. NULL: there is none.
 */
const struct history_sample *history_find(const struct history *h, const struct history_sample *now,
                                          uint64_t window_ms);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * Keeps samples (history.h).
 */
#include "history.h"

struct history_sample history_sample(const struct totals *t, uint64_t now_ms)
{
    return (struct history_sample){
        .ms = now_ms,
        .requests = t->all.requests,
        .errors = t->all.classes[TOTALS_5XX],
        .received_body_bytes = t->all.received_body_bytes,
        .sent_body_bytes = t->all.sent_body_bytes,
        .accepted_connections = t->accepted_connections,
    };
}

/* Returns the sample that is `i` samples older than the newest one. */
static const struct history_sample *get_sample(const struct history *h, unsigned i)
{
    return &h->samples[(h->next + HISTORY_SAMPLES - 1 - i) % HISTORY_SAMPLES];
}

void history_add(struct history *h, const struct history_sample *sample)
{
    if (h->n && sample->ms < get_sample(h, 0)->ms + HISTORY_INTERVAL_MS)
        return;
    h->samples[h->next] = *sample;
    h->next = (h->next + 1) % HISTORY_SAMPLES;
    h->n += h->n < HISTORY_SAMPLES;
}

const struct history_sample *history_find(const struct history *h, const struct history_sample *now, uint64_t window_ms)
{
    for (unsigned i = 0; i < h->n; i++) {
        const struct history_sample *sample = get_sample(h, i);
        uint64_t age = now->ms - sample->ms;
        if (sample->ms <= now->ms && age >= window_ms - window_ms / 10)
            return age <= 2 * window_ms ? sample : NULL;
    }
    return NULL;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * The size of the next record. A client cannot use a record before it has received all of it. So a connection that is
 * new or was idle, whose congestion window is small, gets records of one segment; a busy one gets the largest, which
 * cost the least.
 */
#ifndef TLS_RECORD_SIZE_H
#define TLS_RECORD_SIZE_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RECORD_SMALL_BYTES = 1300,       /* fits a segment of 1,400 bytes with header and tag */
    RECORD_LARGE_BYTES = 16384,      /* the maximum of TLS */
    RECORD_WARMUP_BYTES = 16 * 1024, /* after these the window is large enough */
    RECORD_IDLE_MS = 1000,           /* after this pause it may be small again */
};

/* Begins zeroed. */
struct record_size {
    uint64_t last_ms;
    uint32_t sent; /* since the beginning or the last pause, no more than RECORD_WARMUP_BYTES */
};

/* Returns the bytes of the next record, `want` at most. */
static inline size_t record_size_next(struct record_size *state, uint64_t now_ms, size_t want)
{
    assert(want > 0);
    if (now_ms - state->last_ms >= RECORD_IDLE_MS)
        state->sent = 0;
    size_t max = state->sent < RECORD_WARMUP_BYTES ? RECORD_SMALL_BYTES : RECORD_LARGE_BYTES;
    size_t n = want < max ? want : max;
    state->last_ms = now_ms;
    state->sent += state->sent < RECORD_WARMUP_BYTES ? (uint32_t)n : 0;
    return n;
}

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * The counters of coding_counters.h.
 */
#include "coding_counters.h"

#include <assert.h>

static const struct mk_counter_info responses = {"compress", "responses", "compressed responses, by coding",
                                                 MK_COUNTER_SUM};
static const struct mk_counter_info bytes_in = {"compress", "input_bytes",
                                                "bytes of bodies before they were compressed, by coding",
                                                MK_COUNTER_SUM};
static const struct mk_counter_info bytes_out = {"compress", "output_bytes", "bytes of compressed bodies, by coding",
                                                 MK_COUNTER_SUM};
static const struct mk_counter_info skipped = {
    "compress", "skipped_responses",
    "responses that were not compressed because of Streams, CpuLimit or the memory, by coding", MK_COUNTER_SUM};

enum { CODINGS = MK_CODING_COUNT - 1 }; /* without MK_CODING_IDENTITY */
#define PLACE(count, coding) ((count)*CODINGS + (coding)-1)
#define ROWS(count, info) \
    [PLACE(count, MK_CODING_GZIP)] = {&(info), {"coding", "gzip"}}, \
                  [PLACE(count, MK_CODING_BR)] = {&(info), {"coding", "br"}}, \
                  [PLACE(count, MK_CODING_ZSTD)] = {&(info), {"coding", "zstd"}}

static const struct mk_counter_row rows[CODING_COUNTS * CODINGS] = {
    ROWS(CODING_RESPONSES, responses),
    ROWS(CODING_BYTES_IN, bytes_in),
    ROWS(CODING_BYTES_OUT, bytes_out),
    ROWS(CODING_SKIPPED, skipped),
};

static const struct mk_counter *counters[CODING_COUNTS * CODINGS];

void coding_counters_open(void)
{
    mk_counters_open(rows, CODING_COUNTS * CODINGS, counters);
}

void coding_counters_add(enum coding_count count, enum mk_coding coding, const struct mk_worker *worker, size_t n)
{
    assert(count < CODING_COUNTS && coding > MK_CODING_IDENTITY && coding < MK_CODING_COUNT);
    mk_counter_add(counters[PLACE(count, coding)], worker, (int64_t)n);
}

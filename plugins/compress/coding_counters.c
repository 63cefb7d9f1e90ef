// SPDX-License-Identifier: Apache-2.0
/*
 * The counters of coding_counters.h.
 */
#include "coding_counters.h"

#include <assert.h>

static const struct mk_counter_info infos[CODING_COUNTS] = {
    [CODING_RESPONSES] = {"compress", "responses", "compressed responses, by coding", MK_COUNTER_SUM},
    [CODING_BYTES_IN] = {"compress", "input_bytes", "bytes of bodies before they were compressed, by coding",
                         MK_COUNTER_SUM},
    [CODING_BYTES_OUT] = {"compress", "output_bytes", "bytes of compressed bodies, by coding", MK_COUNTER_SUM},
    [CODING_SKIPPED] = {"compress", "skipped_responses",
                        "responses that were not compressed because of Streams, CpuLimit or the memory, by coding",
                        MK_COUNTER_SUM},
};

static const struct mk_counter *counters[CODING_COUNTS][MK_CODING_COUNT];

void coding_counters_open(void)
{
    for (unsigned i = 0; i < CODING_COUNTS; i++)
        for (unsigned coding = MK_CODING_IDENTITY + 1; coding < MK_CODING_COUNT; coding++) {
            struct mk_counter_label label = {"coding", mk_coding_name(coding)};
            const struct mk_counter *counter = mk_counter_open(&infos[i], &label, 1);
            if (counters[i][coding] != counter) /* requests that have outlived a stop of the plugin may be reading */
                counters[i][coding] = counter;
        }
}

void coding_counters_add(enum coding_count count, enum mk_coding coding, const struct mk_worker *worker, size_t n)
{
    assert(count < CODING_COUNTS && coding > MK_CODING_IDENTITY && coding < MK_CODING_COUNT);
    assert(counters[count][coding]);
    mk_counter_add(counters[count][coding], worker, (int64_t)n);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * The counters of http/h2/flood_counters.h.
 */
#include "http/h2/flood_counters.h"

#include <assert.h>

bool mk__h2_flood_counters_admit(struct mk__h2_flood_counters *g, const struct mk__h2_settings *settings,
                                 enum mk__h2_flood flood, uint64_t now_ms)
{
    assert(flood < MK__H2_FLOOD_RATES);
    if (now_ms - g->since_ms >= MK__H2_FLOOD_INTERVAL_MS)
        *g = (struct mk__h2_flood_counters){.since_ms = now_ms};
    return ++g->counts[flood] <= settings->rates_max[flood];
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Counts events in intervals of ten seconds (http/h2/flood.h).
 */
#include "http/h2/flood.h"

bool mk__h2_flood_admits(struct mk__h2_flood_counters *g, const struct mk__h2_settings *settings,
                         enum mk__h2_flood flood, uint64_t now_ms)
{
    if (now_ms - g->since_ms >= MK__H2_FLOOD_INTERVAL_MS)
        *g = (struct mk__h2_flood_counters){.since_ms = now_ms};
    return ++g->counts[flood] <= settings->rates_max[flood];
}

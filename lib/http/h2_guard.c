// SPDX-License-Identifier: Apache-2.0
/*
 * The counters of http/h2_guard.h.
 */
#include "http/h2_guard.h"

bool mk__h2_guard_admits(struct mk__h2_guard *g, const struct mk__h2_settings *settings, enum mk__h2_deed deed,
                         uint64_t now_ms)
{
    if (now_ms - g->since_ms >= MK__H2_GUARD_MS)
        *g = (struct mk__h2_guard){.since_ms = now_ms};
    return ++g->deeds[deed] <= settings->deeds_max[deed];
}

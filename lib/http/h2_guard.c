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

const char *mk__h2_guard_name(enum mk__h2_deed deed)
{
    static const char *const names[MK__H2_DEEDS] = {
        [MK__H2_RESETS] = "resets",   [MK__H2_FAULTS] = "faults",        [MK__H2_SETTINGS] = "settings",
        [MK__H2_PINGS] = "pings",     [MK__H2_EMPTIES] = "empty frames", [MK__H2_PRIORITIES] = "priorities",
        [MK__H2_MORSELS] = "morsels",
    };
    return names[deed];
}

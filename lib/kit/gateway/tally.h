// SPDX-License-Identifier: Apache-2.0
/*
 * What is counted for each backend: counters with the label `backend`, the text of `To` up to its path, and for
 * those of a group with the label `server`, the line `Server`. They are shown as long as a configuration names them,
 * and have their values again when one names them anew. The sums over all backends are counters of the gateway.
 */
#ifndef MK_GATEWAY_TALLY_H
#define MK_GATEWAY_TALLY_H

#include "gateway.h"

enum mk__gw_tally_counter {
    MK__GW_TALLY_REQUESTS,
    MK__GW_TALLY_RESPONSES,                            /* five: by class, 1xx first */
    MK__GW_TALLY_RETRIES = MK__GW_TALLY_RESPONSES + 5, /* by enum mk_upstream_loss, the reason */
    MK__GW_TALLY_FAILURES = MK__GW_TALLY_RETRIES + 4,
    MK__GW_TALLY_TIMEOUTS,
    MK__GW_TALLY_OPENED, /* connections */
    MK__GW_TALLY_BUSY,   /* connections, now */
    MK__GW_TALLY_IDLE,   /* likewise */
    MK__GW_TALLY_SENT_BYTES,
    MK__GW_TALLY_RECEIVED_BYTES,
    MK__GW_TALLY_CONNECT_DURATION,
    MK__GW_TALLY_HEAD_DURATION,
    MK__GW_TALLY_DURATION,
    MK__GW_TALLY_COUNTERS
};

/* Those of a backend. Lasts as long as the process. */
struct mk__gw_tally {
    struct mk_list node;
    unsigned refs;                 /* sections that name the backend */
    struct mk_str backend, server; /* `server`: of a group; or empty */
    const struct mk_counter *counters[MK__GW_TALLY_COUNTERS];
};

/*
 * Returns the tally of a backend, or of a server of it, and holds it; NULL without memory. In the hooks of the
 * configuration, as the next.
 */
struct mk__gw_tally *mk__gw_tally_get(struct mk_gateway *gateway, struct mk_str backend, struct mk_str server);
void mk__gw_tally_put(struct mk_gateway *gateway, struct mk__gw_tally *tally);
/* Hides the counters of backends and servers that no section names. */
void mk__gw_tally_hide_unused(struct mk_gateway *gateway);
/* Frees all of them, at the end of the process. */
void mk__gw_tally_free_all(struct mk_gateway *gateway);

static inline void mk__gw_tally_add(const struct mk__gw_tally *tally, enum mk__gw_tally_counter counter,
                                    const struct mk_worker *worker, int64_t n)
{
    mk_counter_add(tally->counters[counter], worker, n);
}

#endif

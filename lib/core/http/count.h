// SPDX-License-Identifier: Apache-2.0
/*
 * What HTTP counts except requests (server/counts.h): states of connections, timeouts, and what was refused. The
 * server opens the counters (MK__HTTP_COUNTS of them) and passes them with the context.
 */
#ifndef MK_HTTP_COUNT_H
#define MK_HTTP_COUNT_H

#include "http/context.h"

enum { MK__COUNT_STATES_MAX = 16, MK__COUNT_FLOODS_MAX = 16 };

enum mk__http_count {
    MK__COUNT_ACCEPTED,
    /* refused connections */
    MK__COUNT_REFUSED_BY_PLUGIN,
    MK__COUNT_REFUSED_PROXY_HEADER,
    MK__COUNT_REFUSED_HANDSHAKES,
    /* refused requests */
    MK__COUNT_REFUSED_MALFORMED,
    MK__COUNT_REFUSED_TARGET,
    MK__COUNT_REFUSED_HEAD,
    MK__COUNT_REFUSED_BODY,
    MK__COUNT_REFUSED_SLOW_BODY,
    MK__COUNT_REFUSED_OTHER,
    /* one for each state of connections but CLOSED, for each state with a timeout, and for each flood */
    MK__COUNT_STATES,
    MK__COUNT_TIMEOUTS = MK__COUNT_STATES + MK__COUNT_STATES_MAX,
    MK__COUNT_STREAM_TIMEOUTS = MK__COUNT_TIMEOUTS + MK__COUNT_STATES_MAX,
    MK__COUNT_FLOODS,
    MK__HTTP_COUNTS = MK__COUNT_FLOODS + MK__COUNT_FLOODS_MAX,
};

static inline void mk__count_add(const struct mk__context *http, unsigned count, int64_t n)
{
    assert(count < MK__HTTP_COUNTS);
    if (http->cells)
        mk__counters_add_to(http->cells, http->counters[count]->slot, n);
}

static inline void mk__count_one(const struct mk__context *http, unsigned count)
{
    mk__count_add(http, count, 1);
}

#endif

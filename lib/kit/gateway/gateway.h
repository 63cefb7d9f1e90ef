// SPDX-License-Identifier: Apache-2.0
/*
 * What the library keeps for the process and for a generation of a plugin (<monkey/kit/gateway.h>).
 */
#ifndef MK_GATEWAY_GATEWAY_H
#define MK_GATEWAY_GATEWAY_H

#include <monkey/kit/backend_stats.h>
#include <monkey/kit/gateway.h>
#include <monkey/kit/threads.h>

struct mk_gateway {
    const struct mk_gateway_type *type;
    void *user;
    struct mk_threads threads;
    const struct mk_counter *counters[MK_GATEWAY_COUNTS];
    struct mk_stats_registry registry;
};

/* A transport with its settings; NULL: it has none. All functions that a connection needs are there. */
struct mk__gw_client {
    struct mk__gw_client *next;
    const struct mk_gateway_tls *tls;
    const struct mk_transport *transport;
    struct mk_transport_client *settings;
};

struct mk_gateway_generation {
    struct mk_gateway *gateway;
    struct mk__gw_client *clients;   /* sections with equal settings share them */
    struct mk_gateway_route *routes; /* of all hosts */
    uint32_t names_ms;               /* what is left of the time for names that are checked */
};

/* Counts one, in the thread of the worker. */
static inline void mk__gateway_count(const struct mk_gateway *gateway, const struct mk_worker *worker,
                                     enum mk_gateway_count count)
{
    mk_counter_add(gateway->counters[count], worker, 1);
}

#endif

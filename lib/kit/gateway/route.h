// SPDX-License-Identifier: Apache-2.0
/*
 * Sections of hosts, ready for requests: how connections to their backends carry bytes (plain sockets, or TLS with the
 * settings of the section), the group of servers, counters, and what distinguishes connections.
 */
#ifndef MK_GATEWAY_ROUTE_H
#define MK_GATEWAY_ROUTE_H

#include "gateway.h"

struct mk_gateway_route {
    struct mk_gateway_route *next;               /* of the host */
    struct mk_gateway_route *next_in_generation; /* of the generation */
    struct mk_gateway *gateway;
    const struct mk_gateway_protocol *protocol;
    const struct mk_gateway_conf *conf;
    const struct mk__gw_client *client;
    const struct mk_upstreams *upstreams;
    const struct mk_upstream_group *group; /* NULL: To names a server */
    struct mk_target_stats stats;
    const char *spool_folder; /* NULL: it has no use for one */
    struct mk_str key;        /* what makes a connection one that this section may use */
    uint64_t hash;            /* of the key */
};

/* Tells whether a connection of the section may have a second request. */
static inline bool mk__gw_route_keeps_conns(const struct mk_gateway_route *route)
{
    int64_t keep_alive = route->conf->keep_alive;
    return keep_alive == MK_GATEWAY_KEEP_QUEUE ? route->group != NULL : keep_alive > 0;
}

/* Closes the clients of a generation. Connections continue. */
void mk__gw_route_close_clients(struct mk_gateway_generation *g);

#endif

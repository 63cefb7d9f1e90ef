// SPDX-License-Identifier: Apache-2.0
/*
 * How connections to the backends of [PROXY] carry their bytes: plain sockets for http:// and unix:, for https:// the
 * transport tls with the settings of the section. Sections with equal settings share them.
 */
#ifndef PROXY_CLIENTS_H
#define PROXY_CLIENTS_H

#include "conf.h"
#include "tally.h"

#include <monkey/upstreams.h>

/* A transport with its settings; NULL: it has none. All functions that a connection needs are there. */
struct client {
    struct client *next;
    const struct proxy_tls *tls;
    const struct mk_transport *transport;
    struct mk_transport_client *settings;
};

/* Those of a generation. */
struct clients {
    struct client *first;
    uint32_t names_ms; /* what is left of the time for names that are checked */
};

/* A section of a host, ready for requests. */
struct route {
    struct route *next;
    const struct proxy_conf *conf;
    const struct client *client;
    const struct mk_upstreams *upstreams;
    const struct mk_upstream_group *group; /* NULL: To names a server */
    struct tally *tally;
    struct tally **server_tallies; /* of the lines of the group, in their order */
    unsigned n_servers;
    struct mk_str key; /* what makes a connection one that this section may use */
    uint64_t hash;     /* of the key */
};

/*
 * Opens what the sections of a host need, and reports mistakes at their keys; in host_start. Returns 0, -EINVAL or
 * -ENOMEM.
 */
int routes_open(struct clients *all, struct mk_host *host, struct route **ret);
/* Frees the routes of a host; their clients last as long as the generation. */
void routes_free(struct route *routes);
/* Closes those of a generation. Connections continue. */
void clients_close(struct clients *all);

/* Returns the hash of what it was made of, with `key` behind that. */
uint64_t key_hash(uint64_t hash, struct mk_str key);

/* Returns the tally of a server of the route's group, by its line; or that of the route. Any thread. */
const struct tally *route_find_tally(const struct route *route, struct mk_str server);

/* Returns the route of a section. Any thread. */
const struct route *routes_find(const struct route *routes, const struct proxy_conf *conf);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * How connections to the backends of [PROXY] carry their bytes: plain sockets for http:// and unix:, for https:// the
 * transport tls with the settings of the section. Sections with equal settings share them.
 */
#ifndef PROXY_CLIENTS_H
#define PROXY_CLIENTS_H

#include "conf.h"

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
};

/* The client of a section with https://, in a host. */
struct client_use {
    struct client_use *next;
    const struct proxy_conf *conf;
    const struct client *client;
};

/*
 * Opens what the sections of a host need, and reports mistakes at their keys; in host_start. Returns 0, -EINVAL or
 * -ENOMEM.
 */
int clients_open(struct clients *all, struct mk_host *host, struct client_use **ret);
/* Frees the uses of a host; what they use lasts as long as the generation. */
void clients_free_uses(struct client_use *uses);
/* Closes those of a generation. Connections continue. */
void clients_close(struct clients *all);

/* Returns the client of a section. Any thread. */
const struct client *clients_find(const struct client_use *uses, const struct proxy_conf *conf);

#endif

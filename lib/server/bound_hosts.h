// SPDX-License-Identifier: Apache-2.0
/*
 * Hosts that answer only at some listeners (`Listener` in [HOST]). If there are any, each Listen line has a table of
 * names of its own; else only the table of the generation is used. Builds for small devices leave this out.
 */
#ifndef MK_SERVER_BOUND_HOSTS_H
#define MK_SERVER_BOUND_HOSTS_H

#include "server/generation.h"

/* The hosts that answer at one Listen line. */
struct mk__bound_hosts {
    struct mk__vhosts vhosts;
    struct mk_host *default_host;
};

/* Returns whether the host answers at connections of this Listen line. */
bool mk__bound_hosts_answers(const struct mk_host *host, const struct mk__listen_conf *listen);

/*
 * Makes the tables, without names, if a host is bound; reports a `Listener` that is no Listen line, and a line where no
 * host answers. `names` is the number of names of all hosts. Returns 0, -ENOMEM or as mk__vhost_init().
 */
int mk__bound_hosts_prepare(struct mk_generation *g, size_t names);
/* Adds a name to the tables of its host. Returns the first error of mk__vhost_add(), or 0. */
int mk__bound_hosts_add(struct mk_generation *g, struct mk_str name, struct mk_host *host, uint32_t nth,
                        const char **ret_reason, const struct mk__vhost **ret_first);

/* Returns the host of a name at a listener of this generation; NULL: the listener is not one of them. */
struct mk_host *mk__bound_hosts_find(const struct mk_generation *g, const void *listener, struct mk_str name);
/* Returns whether the host has the name or a wildcard for it, at one of its listeners. */
bool mk__bound_hosts_has_name(const struct mk_host *host, struct mk_str name);
/* Returns whether the host is the default at a Listen line. */
bool mk__bound_hosts_is_default(const struct mk_host *host);

#endif

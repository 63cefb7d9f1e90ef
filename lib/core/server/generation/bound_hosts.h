// SPDX-License-Identifier: Apache-2.0
/*
 * Hosts that answer only at some listeners (`Listener` in [HOST]). If there are any, each Listen line has a table of
 * its own names; else only the table of the generation is used.
 */
#ifndef MK_SERVER_BOUND_HOSTS_H
#define MK_SERVER_BOUND_HOSTS_H

#include "server/generation/generation.h"

/* Returns whether the host answers at connections of this Listen line. */
MK_COLD bool mk__bound_hosts_answers(const struct mk_host *host, const struct mk__listen_conf *listen);

/*
 * Makes the tables, without names, if a host is bound; reports a `Listener` that is no Listen line, and a line where no
 * host answers. `names` is the number of names of all hosts. Returns 0, -ENOMEM or as mk__vhost_init().
 */
MK_COLD int mk__bound_hosts_prepare(struct mk_generation *g, size_t names);
/* Adds a name to the tables of its host. Returns the first error of mk__vhost_add(), or 0. */
MK_COLD int mk__bound_hosts_add(struct mk_generation *g, struct mk_str name, struct mk_host *host, uint32_t nth,
                                const char **ret_reason, const struct mk__vhost **ret_first);

/* Returns whether the host is the default at a Listen line. */
bool mk__bound_hosts_is_default(const struct mk_host *host);

#endif

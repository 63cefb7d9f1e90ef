// SPDX-License-Identifier: Apache-2.0
/*
 * A section with `Type Forward`, ready for requests: how connections to its server carry their bytes, the group of
 * servers, if it names one, and what is counted.
 */
#ifndef AUTH_FORWARD_H
#define AUTH_FORWARD_H

#include <monkey/backend_stats.h>
#include <monkey/upstreams.h>

#include "settings.h"

struct forward {
    const struct forward_conf *conf;
    uint64_t via_mark; /* of all questions (<monkey/via.h>) */
    const struct mk_transport *transport;
    struct mk_transport_client *settings; /* of the transport; NULL: it has none */
    const struct mk_upstreams *upstreams;
    const struct mk_upstream_group *group; /* NULL: `To` names a server */
    struct mk_stats_registry *registry;    /* of the process */
    struct mk_target_stats stats;
};

/*
 * Opens what a section needs, and reports mistakes at its keys; in host_start. Returns 0, -EINVAL or -ENOMEM.
 * `registry` is that of the process.
 */
int forward_open(struct forward *f, struct mk_host *host, const struct auth_conf *conf,
                 struct mk_stats_registry *registry);
/* Closes it, also after a forward_open() that has failed. Questions under way must have ended. */
void forward_close(struct forward *f);

#endif

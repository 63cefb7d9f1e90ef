// SPDX-License-Identifier: Apache-2.0
/*
 * [LIMITS]: the limits of a host's requests by path. The first section that matches a path is used; it overrides the
 * limits of [HOST] if it is the host's own, and those of [SERVER] if it is in monkey.conf.
 */
#ifndef MK_SERVER_PATH_LIMITS_H
#define MK_SERVER_PATH_LIMITS_H

#include "server/generation/generation.h"

extern const struct mk_conf_section mk__section_limits;

struct mk__path_limits_row {
    const struct mk_pattern *match;
    struct mk__http_limits limits; /* complete */
};

/* The sections that a host uses, in their order. Lives as long as the generation. */
struct mk__path_limits {
    /* The host's limits with the highest MaxBodySize of all rows, until the path of a request is known. */
    struct mk__http_limits preliminary;
    const struct mk_pattern_index *index;
    uint32_t n;
    struct mk__path_limits_row rows[];
};

/*
 * Sets `host->path_limits`, after `host->limits`; NULL if there is no section. Reports sections that can never match.
 * Returns 0 or -ENOMEM.
 */
int mk__path_limits_make(struct mk_generation *g, struct mk_host *host);

/*
 * Returns the limits for a path: those of the first row that matches, else the host's. NULL: a pattern has failed on
 * the path, and it is not known which limits it has (see mk_pattern_match()). Any thread.
 */
const struct mk__http_limits *mk__path_limits_find(const struct mk_host *host, struct mk_str path);

#endif
